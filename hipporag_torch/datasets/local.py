"""A data set in a folder: a corpus file and a question file."""

from pathlib import Path

from hipporag_torch.datasets.folders import Folder
from hipporag_torch.datasets.loading import Reading, Shape
from hipporag_torch.datasets.source import Presence
from hipporag_torch.types import Dataset, Document

__all__ = ["LocalDataset", "Shape"]


class LocalDataset:
    """Two files of `path`, each `.json` (a list), `.jsonl` (an object per line) or `.parquet`.

    corpus: rows {title, text}; a document's text is title, newline, text. With `shape` hotpotqa, a `.json`
        corpus may also be one object, {title: [sentences]}.
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
        self._reading = Reading(shape, limit)
        self._folder = Folder(Path(path), corpus, questions, "dataset.path")
        self._name = name

    def load(self) -> Dataset:
        """Read both files. Its origin is `path`, `files`, `fingerprint` and the counts of the whole set.

        Raises `DatasetError` if one is missing, is not valid or not of the stated shape, if there
        are no questions, or if two have the same id. An empty corpus is allowed.
        """
        corpus, questions = self._folder.require(self._folder.corpus, self._folder.questions)
        name = self._name or self._folder.path.resolve().name
        return self._reading.dataset(name, corpus, questions, {"path": str(self._folder.path)})

    def documents(self) -> tuple[Document, ...]:
        """Read the corpus alone; there need be no questions. Raises `DatasetError` as `load` does."""
        return self._reading.documents(*self._folder.require(self._folder.corpus))

    def present(self) -> Presence:
        """Which of the two files are there; nothing is read."""
        return self._folder.present(self._reading.expected)
