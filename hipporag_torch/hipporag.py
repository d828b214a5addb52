"""The facade: one memory that documents go into and questions are asked of."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from hipporag_torch import upkeep
from hipporag_torch.embedders.absent import AbsentEmbedder
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.extractors.absent import AbsentExtractor
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.keepers import InMemory, Keeper, OnDisk
from hipporag_torch.llms.cache import ReplyCaches
from hipporag_torch.maintenance import (
    CheckReport,
    CompactReport,
    IndexStats,
    RebuildReport,
    ReembedReport,
    RepairReport,
)
from hipporag_torch.protocols import Chunker, Embedder, Extractor, Progress, Retriever, no_progress
from hipporag_torch.reports import AddReport, ChangePlan, ExtractReport, RemoveReport, UpdateReport
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.statistics import disk_stats, index_stats
from hipporag_torch.store.identity import require_same_graph, require_same_text
from hipporag_torch.store.store import Store
from hipporag_torch.store.vectors import VectorType, require_vector_type
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, OnError, Ranking

MakeRetriever = Callable[[Index], Retriever]


class HippoRAG:
    """An index that changes, and a retriever that always searches its present state.

    `HippoRAG(indexer=…)` lives in this process; `HippoRAG.open(path, …)` in a directory that survives it
    and that many processes may share. Every change happens whole or not at all, and each has a `plan_…`
    that says what it would do, calls no model and writes nothing.

    make_retriever: called with each new index, so that what was added is found at once; None searches
    with HippoRAG's retriever.
    """

    def __init__(
        self, *, indexer: Indexer, make_retriever: MakeRetriever | None = None, keeper: Keeper | None = None
    ) -> None:
        self._indexer = indexer
        self._make_retriever = make_retriever
        self._keeper = keeper or InMemory(indexer.empty())
        self._retriever: tuple[Index, Retriever] | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        chunker: Chunker | None = None,
        text: TextOptions | None = None,
        graph: AnyGraphOptions | None = None,
        make_retriever: MakeRetriever | None = None,
        vectors: VectorType | None = None,
        settings: str = "{}",
        read_only: bool = False,
        wait_seconds: float | None = 60.0,
    ) -> "HippoRAG":
        """The memory in the directory `path`, which is made if there is none and an embedder is stated.

        What is not stated is taken from the index; stating something else than it was built with raises
        `CompatibilityError` with both sides and the ways out. Without an embedder it can be read by BM25,
        shrunk, checked and compacted; without an extractor, everything but extracting.

        vectors: how they are kept on the disk, float32 (the default) or float16 (half the size).
        settings: a JSON object of the caller's, kept with a new index for building its embedder again.
        read_only: nothing under `path` is written. wait_seconds: how long a change waits for another
        writer; 0 fails at once, None waits for ever.
        """
        require_vector_type(vectors)
        store = Store(path, read_only=read_only, wait_seconds=wait_seconds)
        if not store.is_made:
            if embedder is None:
                store.require_made()
            else:
                made = Indexer(embedder=embedder, extractor=AbsentExtractor(), text=text, graph=graph)
                store.make(made.empty(), settings=settings, dtype=vectors or "float32")
        identity = store.identity()
        require_same_text(identity.text, text, path)
        require_same_graph(identity.graph_options, graph, path)
        snapshot = store.read(None if embedder is None else embedder.identity)
        if vectors not in (None, snapshot.embedder.dtype):
            snapshot.close()
            raise ConfigError(
                f"{path} keeps its vectors as {snapshot.embedder.dtype}, {vectors} was stated; leave it "
                "out, or change it with reembed"
            )
        indexer = Indexer(
            embedder=embedder or AbsentEmbedder(identity=snapshot.index.embedder),
            extractor=extractor or AbsentExtractor(),
            chunker=chunker,
            text=identity.text,
            graph=identity.graph_options,
        )
        return cls(indexer=indexer, make_retriever=make_retriever, keeper=OnDisk(store, snapshot))

    def __enter__(self) -> "HippoRAG":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the generation that is held. A memory in a directory can be opened again."""
        self._keeper.close()

    @property
    def embedder(self) -> Embedder:
        """What makes the vectors of passages and questions."""
        return self._indexer.embedder

    @property
    def chunker(self) -> Chunker:
        """What cuts documents into passages."""
        return self._indexer.chunker

    def with_chunker(self, chunker: Chunker) -> "HippoRAG":
        """The same memory, which cuts what it is handed with `chunker`; what one changes, the other has."""
        own = self._own()
        indexer = Indexer(
            embedder=own.embedder,
            extractor=own.extractor,
            chunker=chunker,
            text=own.text,
            graph=own.graph_options,
        )
        return HippoRAG(indexer=indexer, make_retriever=self._make_retriever, keeper=self._keeper)

    @property
    def index(self) -> Index:
        """The present state. It never changes; a change puts another in its place."""
        return self._keeper.index

    @property
    def retriever(self) -> Retriever:
        """A retriever over the present state."""
        index = self.index
        if self._retriever is None or self._retriever[0] is not index:
            make = self._make_retriever or (lambda i: HippoRAGRetriever(index=i, embedder=self.embedder))
            self._retriever = index, make(index)
        return self._retriever[1]

    def retrieve(self, questions: Sequence[str], *, top_k: int = 5, trace: bool = False) -> list[Ranking]:
        """The best passages for each question; see `Retriever.retrieve`."""
        return self.retriever.retrieve(questions, top_k=top_k, trace=trace)

    def refresh(self) -> bool:
        """Go to the last generation that any process has committed; whether that is another one."""
        return self._keeper.refresh()

    def add(
        self,
        documents: Iterable[Document | str],
        progress: Progress = no_progress,
        *,
        on_error: OnError = "quarantine",
    ) -> AddReport:
        """Index `documents` (a string is a document without a source); all of them, or on an error none.

        on_error: what a failed extraction does: its passage is found by its vector alone, or
        `ExtractionError` lists all failures and nothing is changed.
        """
        wrapped = _documents(documents)
        self._require_embedder()
        return self._keeper.change(
            "add",
            self._own(),
            lambda indexer, index: indexer.add(index, wrapped, on_error=on_error, progress=progress),
        )

    def plan_add(self, documents: Iterable[Document | str]) -> ChangePlan:
        """What `add` would do."""
        return self._own().plan_add(self.index, _documents(documents))

    def update(
        self,
        source_id: str,
        documents: Iterable[Document | str],
        progress: Progress = no_progress,
        *,
        on_error: OnError = "quarantine",
    ) -> UpdateReport:
        """Replace all that a source holds by `documents`; what it keeps is not paid for again."""
        wrapped = _documents(documents)
        self._require_embedder()
        return self._keeper.change(
            "update",
            self._own(),
            lambda indexer, index: indexer.update(
                index, source_id, wrapped, on_error=on_error, progress=progress
            ),
        )

    def plan_update(self, source_id: str, documents: Iterable[Document | str]) -> ChangePlan:
        """What `update` would do."""
        return self._own().plan_update(self.index, source_id, _documents(documents))

    def remove(
        self,
        *,
        source_ids: Sequence[str] = (),
        passage_ids: Sequence[str] = (),
        texts: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> RemoveReport:
        """Take out what is named; what other sources still hold stays."""
        return self._keeper.change(
            "remove",
            self._own(),
            lambda indexer, index: indexer.remove(
                index, source_ids=source_ids, passage_ids=passage_ids, texts=texts, progress=progress
            ),
        )

    def plan_remove(
        self,
        *,
        source_ids: Sequence[str] = (),
        passage_ids: Sequence[str] = (),
        texts: Sequence[str] = (),
    ) -> RemoveReport:
        """The report that `remove` would give."""
        _, report = self._own().remove(
            self.index, source_ids=source_ids, passage_ids=passage_ids, texts=texts
        )
        return report

    def retry_failed(
        self,
        progress: Progress = no_progress,
        *,
        permanent: bool = False,
        on_error: OnError = "quarantine",
    ) -> ExtractReport:
        """Extract again what failed; with `permanent` also what is expected to fail in the same way."""
        self._require_embedder()
        return self._keeper.change(
            "retry",
            self._own(),
            lambda indexer, index: indexer.retry_failed(
                index, permanent=permanent, on_error=on_error, progress=progress
            ),
        )

    def plan_retry_failed(self, *, permanent: bool = False) -> ChangePlan:
        """What `retry_failed` would do."""
        return self._own().plan_retry_failed(self.index, permanent=permanent)

    def reextract(
        self,
        progress: Progress = no_progress,
        *,
        producer: str | None = None,
        on_error: OnError = "quarantine",
    ) -> ExtractReport:
        """Extract all passages again, or those of one producer; a failure keeps the extraction there is."""
        self._require_embedder()
        return self._keeper.change(
            "reextract",
            self._own(),
            lambda indexer, index: indexer.reextract(
                index, producer=producer, on_error=on_error, progress=progress
            ),
        )

    def plan_reextract(self, *, producer: str | None = None) -> ChangePlan:
        """What `reextract` would do."""
        return self._own().plan_reextract(self.index, producer=producer)

    def rebuild_graph(self, graph: AnyGraphOptions, progress: Progress = no_progress) -> RebuildReport:
        """Weigh the edges by other options. No model is asked: extractions and vectors stay."""
        start, before = time.perf_counter(), self.index.graph.num_edges

        def work(indexer: Indexer, index: Index) -> tuple[Index, None]:
            return _with_options(indexer, index.text, graph).rebuild_graph(index, progress=progress), None

        self._keeper.change("rebuild_graph", self._own(), work)
        return RebuildReport(before, self.index.graph.num_edges, time.perf_counter() - start)

    def reembed(
        self,
        embedder: Embedder,
        progress: Progress = no_progress,
        *,
        vectors: VectorType | None = None,
        settings: str = "{}",
    ) -> ReembedReport:
        """Add vectors of another embedder and go on with it; the extractions stay.

        The vectors of the others stay too: opening with one of them works until the index changes, and
        then again after reembedding with it, which embeds only what is new. `vectors` and `settings` are
        those of `open`. A `make_retriever` that brings an embedder of its own has to follow by itself.
        """
        require_vector_type(vectors)
        report = upkeep.reembed(
            self._disk("reembed"), embedder, vectors=vectors, settings=settings, progress=progress
        )
        self._indexer = Indexer(
            embedder=embedder, extractor=self._indexer.extractor, chunker=self._indexer.chunker
        )
        return report

    def check(self, progress: Progress = no_progress, *, quick: bool = False) -> CheckReport:
        """Verify every byte that live data depends on, and the graph against its records."""
        return upkeep.check(self._disk("check").store, progress, quick=quick)

    def repair(self, progress: Progress = no_progress) -> RepairReport:
        """Mend what `check` finds and can be mended; `upkeep.repair` takes an index that does not open."""
        report = upkeep.repair(self._disk("repair").store, self.embedder, progress)
        self.refresh()
        return report

    def compact(
        self,
        progress: Progress = no_progress,
        *,
        cache: EmbeddingCache | None = None,
        replies: ReplyCaches | None = None,
    ) -> CompactReport:
        """Drop what deletions left, so that no byte of a removed text stays in the directory.

        cache, replies: where vectors and chat models' replies are kept outside of it; those of removed texts
        go too.
        Waits for readers of older generations, then raises `LockedError` that names them.
        """
        return upkeep.compact(self._disk("compact"), cache, progress, replies)

    def stats(self) -> IndexStats:
        """What the memory holds, was built with and has failed at."""
        keeper = self._keeper
        disk = disk_stats(keeper.store, keeper.snapshot) if isinstance(keeper, OnDisk) else None
        return index_stats(self.index, disk)

    def _require_embedder(self) -> None:
        """What will need vectors fails before anything is extracted for it."""
        if isinstance(self.embedder, AbsentEmbedder):
            raise ConfigError(
                "no embedder was stated, and new passages, phrases and facts need one; open the index with "
                f"the one that it was built with: {self.embedder.identity}"
            )

    def _own(self) -> Indexer:
        """The parts of this memory with the options of the present index: another process may change them."""
        return _with_options(self._indexer, self.index.text, self.index.graph_options)

    def _disk(self, action: str) -> OnDisk:
        if not isinstance(self._keeper, OnDisk):
            raise InputError(
                f"{action} is for a memory in a directory, this one lives in the process; "
                "HippoRAG.open(path) makes one"
            )
        return self._keeper


def _with_options(indexer: Indexer, text: TextOptions, graph: AnyGraphOptions) -> Indexer:
    return Indexer(
        embedder=indexer.embedder,
        extractor=indexer.extractor,
        chunker=indexer.chunker,
        text=text,
        graph=graph,
    )


def _documents(documents: Iterable[Document | str]) -> list[Document]:
    if isinstance(documents, Document | str):
        raise InputError(f"documents must be a list, got one {type(documents).__name__}")
    return [Document(d) if isinstance(d, str) else d for d in documents]
