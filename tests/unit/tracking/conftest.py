"""A run to record, and W&B kept away from the user's own settings, keys and folders."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from hipporag_torch.chat import Usage
from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, write_run
from hipporag_torch.tracking import FinishedRun, Picture, RunStart

ROWS = (
    QuestionRow(
        id="q1",
        question="Où coule le\u2028Danube ?",
        route="graph",
        gold_ids=("p1",),
        ranked_ids=("p2", "p1"),
        scores=(0.75, 0.1),
        answers=("ウルム",),
        metrics={"recall@1": 0.0, "recall@5": 1.0, "mrr": 0.5, "title/recall@5": 1.0, "em": 0.0, "f1": 1 / 3},
        answer="Ulm",
        usage=Usage(1, 20, 3),
        seconds={"retrieve": 0.25, "read": 0.5},
    ),
    QuestionRow("q2", "Why?", "none:empty_index", (), (), (), (), {}, seconds={"retrieve": 0.25}),
    QuestionRow(
        "q3", "Who?", "dense:no_facts", ("p1", "p3"), ("p3",), (0.5,), (), {"recall@1": 0.5, "recall@5": 0.5}
    ),
)
EVALUATION = Evaluation(
    metrics={
        "questions": 3.0,
        "questions_scored": 2.0,
        "recall@1": 0.25,
        "recall@5": 0.75,
        "mrr": 1 / 3,
        "title/recall@5": 1.0,
        "em": 0.0,
        "f1": 1 / 3,
    },
    rows=ROWS,
    routes={"dense:no_facts": 1, "graph": 1, "none:empty_index": 1},
    gold=GoldCoverage(3, 1, 3, 0, 0, 0),
)
EXTRA: dict[str, Any] = {
    "seconds": {"index": 1.5, "questions": 0.1 + 0.2},
    "usage": {"reading": {"calls": 1, "prompt_tokens": 20}, "filter": {"calls": 2, "prompt_tokens": 9}},
    "money": {"reading": 0.125},
    "index": {"passages": 4, "digest": "abc", "graph": {"kind": "GraphOptions"}, "dropped": {"a.b": 2}},
}
CONFIG: dict[str, Any] = {"ppr": {"damping": 0.5}, "ks": [1, 5], "llm": {"headers": "***"}, "top_k": None}


@pytest.fixture
def start(tmp_path: Path) -> RunStart:
    return RunStart(
        name="musique-graph", directory=tmp_path / "run", config=CONFIG, facts={"dataset": {"passages": 4}}
    )


@pytest.fixture
def finished(start: RunStart) -> FinishedRun:
    """A run whose files and pictures lie in its folder."""
    directory = start.directory
    (directory / "worst").mkdir(parents=True)
    write_run(directory, EVALUATION, extra=EXTRA)
    (directory / "config.yaml").write_text("ks: [1, 5]\n")
    png, html, other = (
        directory / "worst" / "01.png",
        directory / "worst" / "01.html",
        directory / "curves.png",
    )
    Figure(figsize=(1, 1)).savefig(png)
    Figure(figsize=(2, 1)).savefig(other)
    html.write_text("<!DOCTYPE html><p>Danube", encoding="utf-8")
    pictures = (Picture("recall@5 0.00: Où ?", png, html), Picture("recall", other))
    return FinishedRun(evaluation=EVALUATION, extra=EXTRA, pictures=pictures, machine={"cpus": 2})


@pytest.fixture
def other_start(start: RunStart, tmp_path: Path) -> RunStart:
    return replace(start, name="other", directory=tmp_path / "other", group="sweep-1")


@pytest.fixture
def wandb_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without a key, in which W&B keeps what it keeps."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    for name in ("CACHE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(home / name.lower()))
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    return home
