import json
import os
from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.metrics import (
    all_recall_at,
    exact_match,
    recall_at,
    reciprocal_rank,
    token_f1,
)

SHARED = Path(os.environ.get("HIPPORAG_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))
PREDICTIONS = SHARED / "data" / "qa_predictions"


@pytest.mark.parametrize(
    ("gold", "k", "recall", "every"),
    [
        (["a"], 1, 1.0, 1.0),
        (["b"], 1, 0.0, 0.0),
        (["a", "c"], 2, 0.5, 0.0),
        (["a", "c"], 3, 1.0, 1.0),
        (["a", "a", "x"], 9, 0.5, 0.0),
    ],
)
def test_recall(gold: list[str], k: int, recall: float, every: float) -> None:
    assert recall_at(gold, ["a", "b", "c"], k) == recall
    assert all_recall_at(gold, ["a", "b", "c"], k) == every


def test_reciprocal_rank() -> None:
    assert reciprocal_rank(["c", "b"], ["a", "b", "c"]) == 1 / 2
    assert reciprocal_rank(["x"], ["a", "b", "c"]) == 0.0
    assert reciprocal_rank(["x"], []) == 0.0


@pytest.mark.parametrize(
    ("prediction", "answers", "em", "f1"),
    [
        ("The Black Sea!", ["black sea"], 1.0, 1.0),
        ("Black Sea", ["Red Sea", "black sea"], 1.0, 1.0),
        ("the sea", ["Black Sea"], 0.0, 2 / 3),
        ("sea sea sea", ["sea black"], 0.0, 2 / 5),
        ("", ["sea"], 0.0, 0.0),
        ("!!!", ["!!!"], 1.0, 0.0),
    ],
)
def test_answers(prediction: str, answers: list[str], em: float, f1: float) -> None:
    assert exact_match(prediction, answers) == em
    assert token_f1(prediction, answers) == pytest.approx(f1)


def test_what_has_no_value_is_an_error() -> None:
    with pytest.raises(InputError, match="need gold items, got none"):
        recall_at([], ["a"], 1)
    with pytest.raises(InputError, match="need gold items, got none"):
        reciprocal_rank([], ["a"])
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        recall_at(["a"], ["a"], 0)
    with pytest.raises(InputError, match="need an answer, got none"):
        exact_match("a", [])
    with pytest.raises(InputError, match="sequence of strings, got the string 'a'"):
        token_f1("a", "a")


@pytest.mark.skipif(not PREDICTIONS.is_dir(), reason=f"no shared data at {PREDICTIONS}; set HIPPORAG_SHARED")
def test_published_predictions_score_as_published() -> None:
    rows = [row for path in sorted(PREDICTIONS.glob("*.json")) for row in json.loads(path.read_text("utf-8"))]
    assert len(rows) == 6000
    answers = [[row["gold"], *row["gold_aliases"]] for row in rows]
    differs = []
    for row, aliases in zip(rows, answers, strict=True):
        assert exact_match(row["pred"], aliases) == row["em"]
        if abs(token_f1(row["pred"], aliases) - row["f1"]) > 1e-4:
            differs.append((row["pred"], row["gold"], row["f1"]))
    # Both normalise to nothing: SQuAD's script gives 0 where the publication gives 1.
    assert differs == [("!!!", "!!!", 1.0)]
