"""What every kind of data set can do, and what it has at hand before it is read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hipporag_torch.types import Dataset, Document


@dataclass(frozen=True)
class Presence:
    """Which files of a data set are on this machine, as seen without reading them or asking a network.

    `place` is where they were looked for. `corpus` and `questions` are None where the file is absent; the
    names are what it is called. The expected counts are None where nothing is known of them.
    """

    place: str
    corpus_name: str
    questions_name: str
    corpus: Path | None
    questions: Path | None
    expected_passages: int | None = None
    expected_questions: int | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the absent files, the corpus first."""
        files = ((self.corpus_name, self.corpus), (self.questions_name, self.questions))
        return tuple(name for name, path in files if path is None)

    @property
    def message(self) -> str:
        """`corpus absent, 11,656 passages expected; questions present, 1,000 expected`."""
        passages = "" if self.expected_passages is None else f", {self.expected_passages:,} passages expected"
        asked = "" if self.expected_questions is None else f", {self.expected_questions:,} expected"
        return f"corpus {_state(self.corpus)}{passages}; questions {_state(self.questions)}{asked}"


class DatasetSource(Protocol):
    """A data set that is not read yet."""

    def load(self) -> Dataset:
        """The corpus and the questions. Raises `DatasetError` for what is absent or malformed."""
        ...

    def documents(self) -> tuple[Document, ...]:
        """The corpus alone; there need be no questions. Raises `DatasetError` as `load` does."""
        ...

    def present(self) -> Presence:
        """What of it is on this machine. It reads no file and asks no network."""
        ...


def _state(path: Path | None) -> str:
    return "absent" if path is None else "present"
