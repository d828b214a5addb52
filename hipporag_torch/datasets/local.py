"""A data set in a folder: a corpus file and a question file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hipporag_torch.datasets.rows import Row, read_rows
from hipporag_torch.datasets.shapes import SHAPES, detect_shape, passage_text, title_of
from hipporag_torch.errors import ConfigError, DatasetError, InputError
from hipporag_torch.types import Dataset, Document, Question, require_text

Shape = Literal["auto", "paragraphs", "hotpotqa", "2wikimultihopqa", "nq_rear", "popqa", "answers"]


class LocalDataset:
    """Two files of `path`, each `.json` (a list) or `.jsonl` (an object per line).

    corpus: rows {title, text}; a document's text is title, newline, text.
    questions: rows {id or _id, question, …}; without an id, the row's number (from 0) is the id.
    shape: how question rows state answers and gold passages (see `shapes`); `auto` decides by the keys.
    name: the data set's name; None takes the folder's.
    limit: use the first so many questions, at least 1; None uses all. The corpus is always whole.

    HippoRAG's own files are read with `corpus=musique_corpus.json questions=musique.json`.
    """

    def __init__(
        self,
        *,
        path: str | Path,
        corpus: str = "corpus.json",
        questions: str = "questions.json",
        shape: Shape = "auto",
        name: str | None = None,
        limit: int | None = None,
    ) -> None:
        if shape != "auto" and shape not in SHAPES:
            raise ConfigError(f"dataset.shape must be one of auto, {', '.join(SHAPES)}, got {shape!r}")
        if limit is not None and limit < 1:
            raise ConfigError(f"dataset.limit must be at least 1, or null for all questions, got {limit}")
        self._folder = Path(path)
        self._corpus = corpus
        self._questions = questions
        self._shape = shape
        self._name = name
        self._limit = limit

    def load(self) -> Dataset:
        """Read both files.

        Raises `DatasetError` if one is missing, is not valid JSON or not of the stated shape, if there
        are no questions, or if two have the same id. An empty corpus is allowed.
        """
        self._require_files(self._corpus, self._questions)
        documents = self.documents()
        rows = read_rows(self._folder / self._questions)
        if not rows:
            raise DatasetError(f"{self._folder / self._questions} has no questions; expected at least one")
        shape = detect_shape(rows) if self._shape == "auto" else self._shape
        questions = [_question(row, number, shape) for number, row in enumerate(rows[: self._limit])]
        _require_distinct_ids(questions, rows)
        name = self._name or self._folder.resolve().name
        return Dataset(name=name, documents=documents, questions=tuple(questions))

    def documents(self) -> tuple[Document, ...]:
        """Read the corpus alone; there need be no questions. Raises `DatasetError` as `load` does."""
        self._require_files(self._corpus)
        return tuple(_document(row) for row in read_rows(self._folder / self._corpus))

    def _require_files(self, *names: str) -> None:
        missing = [name for name in names if not (self._folder / name).is_file()]
        if not missing:
            return
        if not self._folder.is_dir():
            raise DatasetError(
                f"there is no folder {self._folder} (looked from {Path.cwd()}); it should hold "
                f"{' and '.join(names)}. Set dataset.path"
            )
        there = sorted(p.name for p in self._folder.iterdir() if p.suffix in (".json", ".jsonl"))
        raise DatasetError(
            f"{self._folder} has no {' and no '.join(missing)}; its JSON files are "
            f"{', '.join(there[:20]) or 'none'}. Set dataset.path, dataset.corpus and dataset.questions"
        )


def _document(row: Row) -> Document:
    title = title_of(row)
    try:
        return Document(
            text=passage_text(title, row.text("text")), metadata={"title": title} if title else {}
        )
    except InputError as error:
        raise row.error(str(error)) from error


def _question(row: Row, number: int, shape: str) -> Question:
    try:
        text = require_text(row.text("question"), "'question'")
    except InputError as error:
        raise row.error(str(error)) from error
    labels = SHAPES[shape](row)
    return Question(_id(row, number), text, answers=labels.answers, gold_texts=labels.gold_texts)


def _id(row: Row, number: int) -> str:
    present = [key for key in ("id", "_id") if key in row.fields]
    if not present:
        return str(number)
    value = row.fields[present[0]]
    # PopQA's ids are numbers.
    return str(value) if type(value) is int else row.text(present[0])


def _require_distinct_ids(questions: Sequence[Question], rows: Sequence[Row]) -> None:
    seen: dict[str, int] = {}
    for number, question in enumerate(questions):
        first = seen.setdefault(question.id, number)
        if first != number:
            raise rows[number].error(
                f"question id {question.id!r} is taken by row {first}; give every question its own id"
            )
