"""The facade: one memory that documents go into and questions are asked of."""

from collections.abc import Callable, Iterable, Sequence

from hipporag_torch.errors import InputError
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Embedder, Progress, Retriever, no_progress
from hipporag_torch.reports import AddReport, RemoveReport
from hipporag_torch.types import Document, Ranking


class HippoRAG:
    """An index that changes, and a retriever that always searches its present state.

    make_retriever: called with each new index, so that what was added is found at once.
    """

    def __init__(self, *, indexer: Indexer, make_retriever: Callable[[Index], Retriever]) -> None:
        self._indexer = indexer
        self._make_retriever = make_retriever
        self._index = indexer.empty()
        self._retriever: Retriever | None = None

    @property
    def embedder(self) -> Embedder:
        """What makes the vectors of passages and questions."""
        return self._indexer.embedder

    @property
    def index(self) -> Index:
        """The present state. It never changes; adding or removing puts another in its place."""
        return self._index

    @property
    def retriever(self) -> Retriever:
        """A retriever over the present state."""
        if self._retriever is None:
            self._retriever = self._make_retriever(self._index)
        return self._retriever

    def add(self, documents: Iterable[Document | str], progress: Progress = no_progress) -> AddReport:
        """Index `documents` (a string is a document without a source); all of them, or on an error none."""
        if isinstance(documents, Document | str):
            raise InputError(f"documents must be a list, got one {type(documents).__name__}")
        wrapped = [Document(d) if isinstance(d, str) else d for d in documents]
        index, report = self._indexer.add(self._index, wrapped, progress)
        self._replace(index)
        return report

    def remove(
        self,
        *,
        source_ids: Sequence[str] = (),
        passage_ids: Sequence[str] = (),
        texts: Sequence[str] = (),
    ) -> RemoveReport:
        """Take out what is named; what other sources still hold stays."""
        index, report = self._indexer.remove(
            self._index, source_ids=source_ids, passage_ids=passage_ids, texts=texts
        )
        self._replace(index)
        return report

    def retrieve(self, questions: Sequence[str], *, top_k: int = 5, trace: bool = False) -> list[Ranking]:
        """The best passages for each question; see `Retriever.retrieve`."""
        return self.retriever.retrieve(questions, top_k=top_k, trace=trace)

    def _replace(self, index: Index) -> None:
        self._index = index
        self._retriever = None
