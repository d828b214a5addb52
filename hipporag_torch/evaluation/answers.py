"""A reader's answers, as a file of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hipporag_torch.datasets.rows import read_rows
from hipporag_torch.errors import InputError
from hipporag_torch.types import Question


def read_answers(path: str | Path) -> dict[str, str]:
    """Question id → answer, from rows {id, answer} of a JSON list or JSONL; an empty answer is one.

    Raises `InputError` if the file is missing or an id stands twice, `DatasetError` for other rows.
    """
    if not Path(path).is_file():
        raise InputError(f"there is no file of answers {path} (looked from {Path.cwd()}); set answers=FILE")
    answers: dict[str, str] = {}
    for row in read_rows(Path(path)):
        key = row.value("id")
        # Numbers are the ids of some sets, and of questions without one.
        key = str(key) if type(key) is int else row.text("id")
        if key in answers:
            raise InputError(f"{row.place}: question {key!r} has an answer already; give one for each")
        answers[key] = row.text("answer")
    return answers


def require_answers(questions: Sequence[Question], answers: Mapping[str, str]) -> None:
    """Raise `InputError` unless every question has an answer."""
    if missing := [question.id for question in questions if question.id not in answers]:
        raise InputError(
            f"{len(missing)} of {len(questions)} questions have no answer, such as {missing[0]!r}; ids of "
            f"answers begin with {list(answers)[:3]}. Give one for each, an empty one where there is none"
        )
