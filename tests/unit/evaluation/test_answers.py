import json
from pathlib import Path

import pytest

from hipporag_torch.errors import DatasetError, InputError
from hipporag_torch.evaluation import evaluate, read_answers
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Question, Ranking


class FindsNothing:
    reads = "texts"

    def retrieve(self, questions, *, top_k, trace=False):
        return [Ranking(question, (), (), "bm25:no_match") for question in questions]


DATASET = Dataset(
    "two",
    (),
    (
        Question("1", "Who built it?", answers=("The Abbess of Lund", "Ingrid")),
        Question("2", "When?", answers=("1431",)),
        Question("3", "Why?"),
    ),
)


def written(path: Path, *rows: dict) -> Path:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_answers_are_scored_and_questions_without_known_answers_left_out(tmp_path: Path):
    answers = read_answers(
        written(
            tmp_path / "a.json",
            {"id": 1, "answer": "abbess of Lund!"},
            {"id": "2", "answer": "in 1431"},
            {"id": "3", "answer": ""},
        )
    )
    evaluation = evaluate(DATASET, FindsNothing(), text=TextOptions(), answers=answers)
    assert [row.answer for row in evaluation.rows] == ["abbess of Lund!", "in 1431", ""]
    assert [row.metrics.get("em") for row in evaluation.rows] == [1.0, 0.0, None]
    assert evaluation.metrics["em"] == 0.5
    assert evaluation.metrics["f1"] == pytest.approx((1 + 2 / 3) / 2)


def test_without_answers_nothing_is_scored():
    evaluation = evaluate(DATASET, FindsNothing(), text=TextOptions())
    assert "em" not in evaluation.metrics
    assert evaluation.rows[0].answer is None


def test_a_missing_answer_is_refused_before_the_run():
    with pytest.raises(InputError, match=r"2 of 3 questions have no answer, such as '2'; .*\['1'\]"):
        evaluate(DATASET, FindsNothing(), text=TextOptions(), answers={"1": "x"})


def test_files_that_hold_no_answers(tmp_path: Path):
    with pytest.raises(InputError, match=r"no file of answers .*nowhere\.json"):
        read_answers(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match=r"question '1' has an answer already"):
        read_answers(written(tmp_path / "twice.json", {"id": 1, "answer": "a"}, {"id": "1", "answer": "b"}))
    with pytest.raises(DatasetError, match=r"row 0: 'answer' must be a string, got NoneType"):
        read_answers(written(tmp_path / "null.json", {"id": "1", "answer": None}))
