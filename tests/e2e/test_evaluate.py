"""Runs of scripts/evaluate.py as they are recorded: whole, stopped and gone on with, refused, tracked."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..wandb_log import only_log
from .conftest import ROOT, Run, environment, predictions

PICTURES = ["pictures.charts=true", "pictures.worst=2"]


def metrics_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text("utf-8"))


def stamps(folder: Path) -> dict[Path, int]:
    """When each file was written; Hydra's own are written at every call."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".hydra" not in path.parts]
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.fixture(scope="module")
def whole(
    fork_script: Run, stated: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """A run with everything in its folder, and how it was called but for that."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    arguments = [*stated, *PICTURES, "runtime.batch_size=1"]
    done = fork_script("evaluate", *arguments, f"output={folder}")
    assert (done.status, done.err) == (0, "")
    return folder, arguments


def test_a_runs_folder_says_what_was_run_on_what(whole: tuple[Path, list[str]], small: Path) -> None:
    folder, _ = whole
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in names if not name.startswith(".hydra")} == {
        *("config.yaml", "environment.json", "metrics.json", "predictions.jsonl", "progress.jsonl"),
        *("curves.png", "timings.png", "worst/01.html", "worst/01.png", "worst/02.html", "worst/02.png"),
    }
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    assert config["dataset"]["path"] == str(small)
    assert config["retriever"]["batch_size"] == 1
    environment = json.loads((folder / "environment.json").read_text("utf-8"))
    assert environment["packages"]["torch"]
    assert environment["machine"]["device"] == "cpu"
    metrics = metrics_of(folder)
    assert len(metrics["dataset"]["fingerprint"]) >= 32
    assert len(metrics["index"]["digest"]) == 32
    # Seven passages, their phrases and facts, and three questions; other tests may have filled the cache.
    assert sum(metrics["texts"].values()) > 10
    steps = [json.loads(line) for line in (folder / "progress.jsonl").read_text("utf-8").splitlines()]
    assert [step["questions"] for step in steps] == [1, 2, 3]
    assert steps[-1]["recall@2"] == metrics["recall@2"]


def test_a_row_says_where_its_walk_began_and_how_far_the_gold_lay(whole: tuple[Path, list[str]]) -> None:
    rows = predictions(whole[0])
    assert [row["route"] for row in rows] == ["graph"] * 3
    seeds = [[phrase for phrase, _ in row["seeds"]] for row in rows]
    assert "northwind press" in seeds[0]
    assert "東京" in seeds[2]
    assert all(list(row["gold_steps"]) == sorted(row["gold_ids"]) for row in rows)
    assert set(rows[2]["gold_steps"].values()) == {1}
    line = json.loads((whole[0] / "predictions.jsonl").read_text("utf-8").split("\n")[0])
    assert line["seconds"].keys() == {"retrieve"}


def test_a_finished_run_is_shown_and_not_run_again(fork_script: Run, whole: tuple[Path, list[str]]) -> None:
    folder, arguments = whole
    before = stamps(folder)
    done = fork_script("evaluate", *arguments, f"output={folder}")
    assert (done.status, done.err) == (0, "")
    assert "holds this run already" in done.out
    assert "recall" in done.out
    assert stamps(folder) == before


def test_a_folder_is_not_gone_on_with_by_another_run(fork_script: Run, whole: tuple[Path, list[str]]) -> None:
    folder, arguments = whole
    done = fork_script("evaluate", *arguments, "ppr.damping=0.7", f"output={folder}")
    assert "holds a run with other settings: ppr.damping was 0.5, is 0.7; go on with its own" in done.error


def test_a_spent_budget_leaves_what_was_answered(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([{"reply": "Answer: Norway"}]), encoding="utf-8")
    folder = tmp_path / "run"
    arguments = [*stated, "runtime.batch_size=1", "runtime.cache=false", "reader=llm", "llm=scripted"]
    arguments += [f"llm.replies={rules}", f"output={folder}"]
    stopped = fork_script("evaluate", *arguments, "budget.calls=2")
    assert stopped.status == 1
    assert "BudgetError" in stopped.err
    assert (folder / "failed.txt").read_text("utf-8").startswith("BudgetError: ")
    assert not (folder / "metrics.json").exists()
    done = fork_script("evaluate", *arguments)
    assert (done.status, done.err) == (0, "")
    assert "going on: 2 of 3 questions were asked before" in done.out
    assert metrics_of(folder)["usage"]["reading"]["calls"] == 1
    assert metrics_of(folder)["resumed"] == {"questions": 2}
    assert [row["usage"]["calls"] for row in predictions(folder)] == [1, 1, 1]
    assert not (folder / "failed.txt").exists()
    assert not (folder / "predictions.part.jsonl").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(
    fork_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many"
    many.mkdir()
    questions = json.loads((small / "questions.json").read_text("utf-8"))
    asked = [{**question, "id": f"{question['id']} {n}"} for n in range(100) for question in questions]
    (many / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
    (many / "corpus.json").write_bytes((small / "corpus.json").read_bytes())
    arguments = [*stated, f"dataset.path={many}", "runtime.batch_size=1", "pictures.charts=false"]
    arguments += ["pictures.worst=0"]
    draft = tmp_path / "killed" / "predictions.part.jsonl"
    command = [sys.executable, "scripts/evaluate.py", *arguments, f"output={draft.parent}"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if draft.is_file() and draft.read_bytes().count(b"\n") > 20:
                break
            time.sleep(0.001)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    kept = draft.read_bytes().count(b"\n") - 1
    assert 20 <= kept < 300
    done = fork_script("evaluate", *arguments, f"output={draft.parent}")
    assert (done.status, done.err) == (0, "")
    assert f"going on: {kept} of 300 questions were asked before" in done.out
    assert fork_script("evaluate", *arguments, f"output={tmp_path / 'whole'}").status == 0
    assert predictions(draft.parent) == predictions(tmp_path / "whole")
    lines = (draft.parent / "progress.jsonl").read_text("utf-8").splitlines()
    steps = [json.loads(line)["questions"] for line in lines]
    # A kill between a row and its step leaves out that step.
    assert steps == sorted(set(steps))
    assert set(range(1, 301)) - set(steps) <= {kept}


@pytest.mark.slow
def test_a_sweep_recorded_offline_in_wandb(run_script: Run, stated: list[str], tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    done = run_script(
        "evaluate",
        "-m",
        *stated,
        *PICTURES,
        "tracker=wandb",
        "ppr.damping=0.4,0.6",
        f"hydra.sweep.dir={sweep}",
        env={"WANDB_MODE": "offline", "WANDB_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)},
    )
    assert done.status == 0, done.err
    for job in ("0", "1"):
        recorded = only_log(sweep / job)
        metrics = {k: v for k, v in metrics_of(sweep / job).items() if isinstance(v, float)}
        assert {name: recorded.summary[name] for name in metrics} == metrics
        assert recorded.config["ppr"]["damping"] == (0.4, 0.6)[int(job)]
        assert recorded.run.run_group == "sweep"
        assert recorded.exit_code == 0


def test_a_job_that_fails_does_not_end_the_sweep(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    sweep = [*stated, "ppr.damping=2.0,0.5", f"hydra.sweep.dir={tmp_path}"]
    done = fork_script("evaluate", *sweep, "-m")
    assert done.status == 1
    assert "ConfigError: ppr.damping must lie between 0 and 1" in done.err
    assert not (tmp_path / "0" / "metrics.json").exists()
    assert metrics_of(tmp_path / "1")["questions"] == 3


PUBLISHED = """# @package _global_
expected:
  recall@20: {low: 0.9, high: 1.0, source: "a table", sure: B}
  mrr: {low: 0.0, high: 0.1, source: "another", sure: C}
  f1: {low: 0.0, high: 1.0, source: "a third", sure: C}
"""


def test_a_run_is_held_beside_what_was_published(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "own.yaml").write_text(PUBLISHED, encoding="utf-8")
    arguments = [*stated, "experiment=own", f"output={tmp_path / 'run'}", f"--config-dir={tmp_path}"]
    done = fork_script("evaluate", *arguments)
    assert (done.status, done.err) == (0, "")
    shown = [line.split() for line in done.out.splitlines() if "published" in line or "table" in line]
    assert any(line[:1] == ["recall@20"] and "yes" in line for line in shown)
    rows = {row["metric"]: row["within"] for row in metrics_of(tmp_path / "run")["expected"]}
    assert rows == {"recall@20": True, "mrr": False, "f1": None}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["pictures.worst=-1"], "pictures.worst must be a whole number of at least 0, got -1"),
        (["pictures.by=recall@7"], "pictures.by must be one of recall@1, recall@2"),
        (["++expected={mrr: {low: 2}}"], "expected.mrr must state low, high, source and sure"),
        (["pictures.charts=maybe"], "pictures.charts must be true or false, got 'maybe'"),
        (["tracker=wandb", "tracker.mode=sometimes"], "tracker.mode must be"),
        (["trace=yes please"], "trace must be true or false"),
    ],
)
def test_what_is_stated_wrongly_shows_before_the_work(
    fork_script: Run, stated: list[str], tmp_path: Path, overrides: list[str], message: str
) -> None:
    folder = tmp_path / "run"
    done = fork_script("evaluate", *stated, *overrides, f"output={folder}")
    assert message in done.error
    assert not (folder / "metrics.json").exists()


def test_a_sweep_has_no_folder_of_one_run(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    sweep = [*stated, f"output={tmp_path / 'one'}", f"hydra.sweep.dir={tmp_path / 'sweep'}", "-m"]
    done = fork_script("evaluate", *sweep)
    assert done.status == 1
    assert "output is the folder of one run; a sweep's is hydra.sweep.dir=DIR" in done.err
