"""scripts/study.py as a user runs it, on a small corpus without a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import predictions

Run = Callable[..., Any]
STUDY = """
_target_: hipporag_torch.evaluation.variants.Study
_convert_: all
variants:
  reference: [seeding=reference]
  dense: [retriever=dense]
  fused: [retriever=dense_bm25, retriever.bm25_weight=0.7]
  damping 0.7: [ppr.damping=0.7]
  more synonyms: [graph.synonym_threshold=0.1]
baseline: dense
metric: recall@2
halves: true
random: {count: 3, seed: 0}
box:
  ppr.damping: {low: 0.2, high: 0.9}
  edges: {choices: [1.0, 3.0], keys: [graph.fact_weight, graph.synonym_weight]}
"""


def written(folder: Path, text: str) -> str:
    """`text` as the study `own`; the option that finds it."""
    (folder / "study").mkdir(parents=True)
    (folder / "study" / "own.yaml").write_text(text, encoding="utf-8")
    return f"--config-dir={folder}"


def two_variants(one: str, other: str) -> str:
    return f"_target_: hipporag_torch.evaluation.variants.Study\nvariants: {{{one}, {other}}}\n"


@pytest.fixture(scope="module")
def studied(
    fork_script: Run, stated: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """The run's folder and output."""
    folder = tmp_path_factory.mktemp("studied")
    config = written(folder / "own", STUDY)
    own = ["study=own", "seeding=reference", f"hydra.run.dir={folder / 'run'}"]
    done = fork_script("study", config, *stated, *own)
    assert done.status == 0, done.err
    return folder / "run", done


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads((folder / "study.json").read_text("utf-8"))}


def test_a_row_for_every_variant(studied: tuple[Path, Any]) -> None:
    folder, done = studied
    rows = rows_of(folder)
    names = [
        "reference",
        "dense",
        "fused",
        "damping 0.7",
        "more synonyms",
        "random 0",
        "random 1",
        "random 2",
    ]
    assert list(rows) == names
    for name, row in rows.items():
        metrics = json.loads((folder / name / "metrics.json").read_text("utf-8"))
        assert row["value"] == pytest.approx(metrics["recall@2"])
        assert {key: metrics[key] for key in row["metrics"]} == row["metrics"]
        assert metrics["variant"]["overrides"] == row["overrides"]
        assert row["difference"] == pytest.approx(row["value"] - rows["dense"]["value"])
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["baseline"] == "dense"
        # Of three questions two are searched.
        assert 2 * row["search"] + row["held_out"] == pytest.approx(3 * row["value"])
        assert name in done.out
    assert [name for name, row in rows.items() if row["drawn"]] == names[-3:]


def test_what_is_shown_fits_a_terminal(studied: tuple[Path, Any]) -> None:
    folder, done = studied
    lines = done.out.splitlines()
    shown = [line for line in lines if not line.startswith(("worst:", "median:", "best:", "written to"))]
    assert max(map(len, shown)) <= 80
    assert "small: 3 questions, 7 passages" in done.out
    assert "against dense" in done.out
    rows = rows_of(folder)
    best = max((row for row in rows.values() if row["drawn"]), key=lambda row: row["search"])
    (line,) = [line for line in lines if line.startswith("best:")]
    assert any(
        line == f"best: {' '.join(row['overrides'])}" and row["search"] == best["search"]
        for row in rows.values()
    )
    assert done.err.strip() == ""


@pytest.mark.parametrize("name", ["dense", "fused", "damping 0.7", "more synonyms", "random 1"])
def test_a_row_can_be_run_again_alone(
    studied: tuple[Path, Any], fork_script: Run, stated: list[str], tmp_path: Path, name: str
) -> None:
    folder, _ = studied
    overrides = rows_of(folder)[name]["overrides"]
    done = fork_script("evaluate", *stated, "seeding=reference", *overrides, f"hydra.run.dir={tmp_path}")
    assert done.status == 0, done.err
    assert predictions(tmp_path) == predictions(folder / name)


def test_compare_reads_two_of_the_folders(
    studied: tuple[Path, Any], fork_script: Run, tmp_path: Path
) -> None:
    folder, _ = studied
    done = fork_script("compare", str(folder / "dense"), str(folder / "fused"), f"hydra.run.dir={tmp_path}")
    assert done.status == 0, done.err
    compared = {
        row["metric"]: row
        for row in json.loads((tmp_path / "comparison.json").read_text("utf-8"))["comparisons"]
    }
    row = rows_of(folder)["fused"]
    assert compared["recall@2"]["difference"] == row["difference"]
    assert (compared["recall@2"]["low"], compared["recall@2"]["high"]) == (row["low"], row["high"])


@pytest.mark.slow
def test_an_index_in_a_directory_is_made_once_and_not_changed(
    studied: tuple[Path, Any], fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    config = written(
        tmp_path / "own", two_variants("reference: []", "more synonyms: [graph.synonym_threshold=0.1]")
    )
    stated = [*stated, f"index.path={tmp_path / 'index'}", "seeding=reference"]
    first, second, after = (tmp_path / name for name in ("first", "second", "after"))
    for folder in (first, second):
        done = fork_script("study", config, *stated, "study=own", f"hydra.run.dir={folder}")
        assert done.status == 0, done.err
        for name in ("reference", "more synonyms"):
            assert predictions(folder / name) == predictions(studied[0] / name)
    fork_script("evaluate", *stated, f"hydra.run.dir={after}")
    assert predictions(after) == predictions(studied[0] / "reference")
    assert predictions(after) != predictions(studied[0] / "more synonyms")


@pytest.mark.slow
def test_a_graph_that_the_run_does_not_know_is_not_changed(
    fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    index = f"index.path={tmp_path / 'index'}"
    fork_script(
        "index", "action=add", *stated, index, "graph.fact_weight=5.0", f"hydra.run.dir={tmp_path / 'a'}"
    )
    config = written(tmp_path / "own", two_variants("b: []", "a: [graph.synonym_weight=0.5]"))
    run = [config, *stated, index, "study=own", f"hydra.run.dir={tmp_path / 'b'}"]
    done = fork_script("study", *run)
    assert done.status == 1
    assert "a changes graph options, but the index" in done.err
    assert "fact_weight=5.0" in done.err
    assert fork_script("study", *run, "graph.fact_weight=5.0").status == 0


BAD = {
    "another index": (
        "a: [embedder.dim=8, text=reference]",
        "a states embedder, text; the variants share one",
    ),
    "unknown key": ("a: [ppr.dampin=0.5]", "ConfigError: study.variants: a: Could not override 'ppr.dampin'"),
    "unknown option": ("a: [retriever=magic]", "study.variants: a: "),
    "damping": ("a: [ppr.damping=2]", "study.variants: a: ppr.damping must lie between 0 and 1"),
    "no overrides": ("a: [damping]", "study.variants: a states damping"),
    "name": ("../a: []", "cannot be a folder's"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_variant_is_named_before_anything_is_asked(
    fork_script: Run, stated: list[str], tmp_path: Path, case: str
) -> None:
    variants, message = BAD[case]
    config = written(tmp_path / "own", two_variants("b: []", variants))
    done = fork_script("study", config, *stated, "study=own", f"hydra.run.dir={tmp_path / 'run'}")
    assert message in done.error


def test_a_metric_that_is_not_measured(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    config = written(tmp_path / "own", two_variants("b: []", "a: []"))
    done = fork_script(
        "study", config, *stated, "study=own", "+study.metric=recall@3", f"hydra.run.dir={tmp_path / 'run'}"
    )
    assert "study.metric must be a metric of the questions, got 'recall@3'; they have recall@1" in done.error
