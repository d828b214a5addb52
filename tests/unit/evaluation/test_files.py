import json
from dataclasses import replace
from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, read_run, write_run

ROW = QuestionRow(
    id="q1",
    question="Où coule le\u2028Danube ?",
    route="graph",
    gold_ids=("p1",),
    ranked_ids=("p2", "p1"),
    scores=(0.75, 0.1),
    answers=("ウルム",),
    metrics={"recall@1": 0.0, "mrr": 0.5},
)
EMPTY = QuestionRow("q2", "Why?", "none:empty_index", (), (), (), (), {})
RUN = Evaluation(
    metrics={"questions": 2.0, "questions_scored": 1.0, "recall@1": 0.0, "mrr": 0.5},
    rows=(ROW, EMPTY),
    routes={"graph": 1, "none:empty_index": 1},
    gold=GoldCoverage(2, 1, 1, 0, 0, 0),
)


def test_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    write_run(folder, RUN, extra={"seconds": {"evaluate": 1.5}})
    assert read_run(folder) == RUN
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.json", "predictions.jsonl"]
    summary = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert list(summary) == ["gold", "mrr", "questions", "questions_scored", "recall@1", "routes", "seconds"]
    assert summary["mrr"] == 0.5
    assert summary["seconds"] == {"evaluate": 1.5}
    assert "ウルム" in (folder / "predictions.jsonl").read_text("utf-8")


def test_writing_again_replaces_and_gives_the_same_bytes(tmp_path: Path) -> None:
    write_run(tmp_path, replace(RUN, rows=()), extra={})
    write_run(tmp_path, RUN, extra={})
    first = [(tmp_path / name).read_bytes() for name in ("metrics.json", "predictions.jsonl")]
    write_run(tmp_path, RUN, extra={})
    assert [(tmp_path / name).read_bytes() for name in ("metrics.json", "predictions.jsonl")] == first


@pytest.mark.parametrize(
    ("run", "extra", "match"),
    [
        (RUN, {"gold": {}}, r"extra must not use the names of metrics, got gold"),
        (RUN, {"mrr": {}}, r"extra must not use the names of metrics, got mrr"),
        (RUN, {"speed": 1.0}, r"bare number for speed"),
        (RUN, {"seconds": {"index": float("nan")}}, r"metrics\.json cannot hold this run: .*JSON compliant"),
        (RUN, {"path": Path()}, r"metrics\.json cannot hold this run: .*not JSON serializable"),
        (
            replace(RUN, rows=(replace(ROW, scores=(float("inf"),)),)),
            {},
            r"predictions\.jsonl cannot hold this run",
        ),
        (replace(RUN, rows=(replace(ROW, answers=("\ud800",)),)), {}, r"predictions\.jsonl .*surrogates"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, run: Evaluation, extra: dict[str, object], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        write_run(tmp_path / "run", run, extra=extra)
    assert not (tmp_path / "run").exists()


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere holds no metrics\.json.* it holds nothing"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds no predictions\.jsonl.* it holds metrics\.json"):
        read_run(tmp_path)
    (tmp_path / "predictions.jsonl").write_text("")
    with pytest.raises(InputError, match=r"metrics\.json lacks routes, gold"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("metrics.json", b"{", r"metrics\.json is not valid JSON"),
        ("metrics.json", b"[]", r"metrics\.json: expected an object, got list"),
        ("metrics.json", b"\xff", r"metrics\.json is not UTF-8"),
        (
            "metrics.json",
            b'{"routes": {}, "gold": {"absent": 0}}',
            r"metrics\.json, gold: expected the fields absent, example, .* got absent;",
        ),
        ("predictions.jsonl", b'{"id": "q1"', r"predictions\.jsonl, line 1 is not valid JSON.*cut off"),
        (
            "predictions.jsonl",
            b'{"id": "q1"}\n',
            r"line 1: expected the fields answer, answer_flag, .* got id;",
        ),
    ],
)
def test_damaged_runs(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    write_run(tmp_path, RUN, extra={})
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match):
        read_run(tmp_path)
