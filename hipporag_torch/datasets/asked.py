"""Questions in a file of their own, without answers: a text with one a line, or JSON or Parquet rows."""

from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.datasets.rows import read_rows
from hipporag_torch.errors import DatasetError, InputError
from hipporag_torch.types import require_text


@dataclass(frozen=True)
class Asked:
    """A question and the id that its answer gets: its own, or its place in the file, from 0."""

    id: str
    text: str


def read_questions(path: str | Path) -> list[Asked]:
    """The questions of a .txt, .json, .jsonl or .parquet file, in order; blank lines of a .txt are skipped.

    Raises `InputError` if the file is missing or an id stands twice, `DatasetError` for what cannot be read
    and where there is no question.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(
            f"there is no file of questions {file} (looked from {Path.cwd()}); set questions.path"
        )
    asked = _lines(file) if file.suffix == ".txt" else _rows(file)
    if not asked:
        raise DatasetError(f"{file} has no questions; expected at least one")
    seen: set[str] = set()
    for question in asked:
        if question.id in seen:
            raise InputError(f"{file}: the question id {question.id!r:.80} stands twice; give each its own")
        seen.add(question.id)
    return asked


def _lines(file: Path) -> list[Asked]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file} is not UTF-8: {error}; save it as UTF-8") from error
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return [Asked(str(number), line) for number, line in enumerate(lines)]


def _rows(file: Path) -> list[Asked]:
    asked = []
    for number, row in enumerate(read_rows(file)):
        key = row.value("id") if "id" in row.fields else number
        try:
            text = require_text(row.text("question"), "'question'")
        except InputError as error:
            raise row.error(str(error)) from error
        asked.append(Asked(str(key) if type(key) is int else row.text("id"), text))
    return asked
