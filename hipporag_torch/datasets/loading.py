"""A corpus file and a question file, read into a data set."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hipporag_torch.datasets.counts import Expected
from hipporag_torch.datasets.rows import Row, as_rows, read_rows, read_values
from hipporag_torch.datasets.shapes import SHAPES, detect_shape, passage_text, title_of
from hipporag_torch.errors import ConfigError, DatasetError, InputError
from hipporag_torch.types import Dataset, Document, Question, require_text

Shape = Literal["auto", "paragraphs", "hotpotqa", "2wikimultihopqa", "nq_rear", "popqa", "answers"]


@dataclass(frozen=True)
class Reading:
    """How the two files are read: see `LocalDataset` for `shape` and `limit`."""

    shape: Shape = "auto"
    limit: int | None = None
    expected: Expected = field(default_factory=Expected)

    def __post_init__(self) -> None:
        if self.shape != "auto" and self.shape not in SHAPES:
            raise ConfigError(f"dataset.shape must be one of auto, {', '.join(SHAPES)}, got {self.shape!r}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(
                f"dataset.limit must be at least 1, or null for all questions, got {self.limit}"
            )

    def dataset(self, name: str, corpus: Path, questions: Path, where: Mapping[str, Any]) -> Dataset:
        """Both files. `where` says where they come from; what they are is added to it as the origin.

        Raises `DatasetError` if a file is not valid or not of the stated shape, if there are no questions,
        if two have the same id, or if a count is not the expected one. An empty corpus is allowed.
        """
        documents = self.documents(corpus)
        rows = read_rows(questions)
        if not rows:
            raise DatasetError(f"{questions} has no questions; expected at least one")
        self.expected.require_questions(len(rows), str(questions))
        shape = detect_shape(rows) if self.shape == "auto" else self.shape
        asked = [_question(row, number, shape) for number, row in enumerate(rows[: self.limit])]
        _require_distinct_ids(asked, rows)
        origin = {**where, **_contents(corpus, questions), "passages": len(documents), "questions": len(rows)}
        return Dataset(name=name, documents=documents, questions=tuple(asked), origin=origin)

    def documents(self, corpus: Path) -> tuple[Document, ...]:
        """The corpus alone. Raises `DatasetError` as `dataset` does."""
        values = read_values(corpus)
        # Only where the shape is stated: an object may be anything else.
        titled = self.shape == "hotpotqa" and isinstance(values, dict)
        rows = _by_title(corpus, values) if titled else as_rows(corpus, values)
        documents = tuple(_document(row) for row in rows)
        self.expected.require_passages(len(documents), str(corpus))
        return documents


def _contents(corpus: Path, questions: Path) -> dict[str, Any]:
    """The files with their digests, and a fingerprint of both that does not depend on their names."""
    files: dict[str, dict[str, Any]] = {}
    for role, path in (("corpus", corpus), ("questions", questions)):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files[role] = {"name": path.name, "bytes": path.stat().st_size, "sha256": digest}
    both = "".join(file["sha256"] for file in files.values())
    return {"files": files, "fingerprint": hashlib.sha256(both.encode("ascii")).hexdigest()}


def _by_title(path: Path, corpus: dict[str, Any]) -> list[Row]:
    """HotpotQA's corpus as HippoRAG 1 keeps it: {title: [sentences]}."""
    for title, sentences in corpus.items():
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise DatasetError(f"{path}, {title!r}: expected a list of sentences, got {sentences!r:.80}")
    # HotpotQA's sentences bring the space before them along.
    return [
        Row(f"{path}, {title!r}", {"title": title, "text": "".join(sentences)})
        for title, sentences in corpus.items()
    ]


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
