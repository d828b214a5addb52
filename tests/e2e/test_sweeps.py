"""Sweeps as a user runs them: jobs in other processes, and a sweep that is an experiment."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SAMPLE = ["dataset=sample", "extractor=sample", "embedder=hashing", "runtime.device=cpu"]


def metrics_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text("utf-8"))


def overrides_of(folder: Path) -> set[str]:
    lines = (folder / ".hydra" / "overrides.yaml").read_text("utf-8").splitlines()
    return {line.removeprefix("- ") for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["processes", "submitit_local"])
def test_every_job_of_a_sweep_has_its_results(launcher: str, run_script: Run, tmp_path: Path) -> None:
    """Side by side, from a cold cache."""
    sweep = [*SAMPLE, f"hydra/launcher={launcher}", f"hydra.sweep.dir={tmp_path / 'sweep'}"]
    sweep.append(f"runtime.cache_dir={tmp_path / 'cache'}")
    done = run_script("evaluate", *sweep, "seeding=reference", "ppr.damping=0.1,0.9", "-m")
    assert done.status == 0, done.out + done.err
    first, second = (tmp_path / "sweep" / job for job in "01")
    assert "ppr.damping=0.1" in overrides_of(first)
    assert "ppr.damping=0.9" in overrides_of(second)
    assert metrics_of(first)["index"]["passages"] == metrics_of(second)["index"]["passages"]
    assert metrics_of(first)["mrr"] != metrics_of(second)["mrr"]
    texts = [metrics_of(job)["texts"] for job in (first, second)]
    with closing(sqlite3.connect(tmp_path / "cache" / "embeddings.sqlite")) as cache:
        (vectors,) = cache.execute("SELECT count(*) FROM embeddings").fetchone()
    # Both are asked for the same texts; whichever comes first embeds one.
    assert sum(job["embedded"] for job in texts) == vectors > 100
    # The embedder has no instructions, so all its texts take turns at one lock.
    assert len(list((tmp_path / "cache").glob("embeddings.*.lock"))) == 1


@pytest.mark.slow
def test_an_experiment_that_is_a_sweep_needs_no_more_than_its_name(
    run_script: Run, shared: Path, tmp_path: Path
) -> None:
    """Two of its settings: what is stated is not swept."""
    stated = ["ppr.damping=0.5", "graph.synonym_threshold=1.1", "embedder=hashing", "dataset.limit=10"]
    # That says something of pictures, so it is the experiment that has them off.
    stated += ["pictures.by=recall@5"]
    stated += [f"hydra.sweep.dir={tmp_path / 'sweep'}", f"runtime.cache_dir={tmp_path / 'cache'}"]
    done = run_script(
        "evaluate", "experiment=sweep_musique_train", *stated, env={"HIPPORAG_SHARED": str(shared)}
    )
    assert done.status == 0, done.out + done.err
    jobs = sorted(path for path in (tmp_path / "sweep").iterdir() if path.is_dir())
    assert [path.name for path in jobs] == ["0", "1"]
    weights = [next(o for o in overrides_of(job) if o.startswith("seeding.passage_weight")) for job in jobs]
    assert weights == ["seeding.passage_weight=0.02", "seeding.passage_weight=0.05"]
    assert all(metrics_of(job)["index"]["passages"] == 1890 for job in jobs)
    assert not (tmp_path / "sweep" / "0" / "worst").exists()
