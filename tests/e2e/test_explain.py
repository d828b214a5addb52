"""scripts/explain.py as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
QUESTION = "In which country was Northwind Press founded?"


def test_explain_shows_and_writes(run_script: Run, stated: list[str], tmp_path: Path) -> None:
    done = run_script("explain", *stated, f"hydra.run.dir={tmp_path}", f'question="{QUESTION}"', "top_k=3")
    assert done.status == 0, done.err
    assert done.err.strip() == ""
    for words in (QUESTION, "route graph", "facts kept", "seeds", "passages", "through northwind press"):
        assert words in done.out
    assert "\x1b" not in done.out
    written = json.loads((tmp_path / "explanation.json").read_text("utf-8"))
    assert written["question"] == QUESTION
    assert [node["rank"] for node in written["nodes"] if node["kind"] == "passage"] == [1, 2, 3]
    assert {kind for edge in written["edges"] for kind in edge["kinds"]} >= {"fact", "membership"}
    assert (tmp_path / "explanation.png").read_bytes().startswith(b"\x89PNG")
    assert "Northwind Press prints atlases" in (tmp_path / "explanation.html").read_text("utf-8")
    for name in ("json", "png", "html"):
        assert f"written to {tmp_path / f'explanation.{name}'}" in done.out


def test_only_what_is_asked_for(run_script: Run, stated: list[str], tmp_path: Path) -> None:
    done = run_script(
        "explain",
        *stated,
        f"hydra.run.dir={tmp_path}",
        'question="東京"',
        "png=false",
        "html=false",
        "retriever=dense",
    )
    assert done.status == 0, done.err
    assert "dense:requested" in done.out
    assert "東京" in done.out
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"explanation.json"}
    assert json.loads((tmp_path / "explanation.json").read_text("utf-8"))["edges"] == []


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "question is not set"),
        (["question=[a,b]"], "question must be one question"),
        (["question=a", "top_k=0"], "top_k"),
        (["question=a", "max_nodes=0"], "max_nodes must be at least 1, got 0"),
        (["question=a", "+nonsense=1"], "unknown key nonsense; explain takes"),
    ],
)
def test_mistakes(
    fork_script: Run, stated: list[str], tmp_path: Path, overrides: list[str], message: str
) -> None:
    done = fork_script("explain", *stated, f"hydra.run.dir={tmp_path}", *overrides)
    assert message in done.error
