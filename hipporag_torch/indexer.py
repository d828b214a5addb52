"""Documents in, a new index out: chunk → extract → embed → connect."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from hipporag_torch.building import Built, Clock, assemble, build, empty_index, regraphed
from hipporag_torch.chunkers import WholeDocument
from hipporag_torch.errors import CompatibilityError, InputError
from hipporag_torch.extracted import Extracted, estimated, extract
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions
from hipporag_torch.index import Index
from hipporag_torch.protocols import Chunker, Embedder, Extractor, Progress, no_progress
from hipporag_torch.reports import (
    AddReport,
    ChangePlan,
    ExtractReport,
    RemoveReport,
    SourceReport,
    UpdateReport,
)
from hipporag_torch.selections import failed_ids, produced_by, replacing, to_extract
from hipporag_torch.sources import (
    Piece,
    as_before,
    documents_of,
    held_by,
    merged,
    passages_by_source,
    pieces_of,
    without,
)
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, OnError, Passage, require_text
from hipporag_torch.vocabulary import Vocabulary, VocabularyChange


class Indexer:
    """Makes indexes of one identity: one embedder, one way to key text and weigh edges.

    add(A) then add(B) = add(A + B) = add(B) then add(A), and add(A + B) then remove(B) = add(A): the
    rows of an index are canonical and its graph is a function of its passages. Only new passages
    are extracted, only new passages, phrases and facts are embedded. An index that is handed in stays as
    it is; all methods but `rebuild` and `rebuild_graph` raise `CompatibilityError` if its identity is
    another.

    chunker: cuts documents into passages; None makes one passage of each.
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        extractor: Extractor,
        chunker: Chunker | None = None,
        text: TextOptions | None = None,
        graph: AnyGraphOptions | None = None,
    ) -> None:
        self.embedder = embedder
        self.extractor = extractor
        self.chunker = chunker or WholeDocument()
        self.text = text or TextOptions()
        self.graph_options = graph or GraphOptions()

    def empty(self) -> Index:
        """An index without passages."""
        return empty_index(self.embedder, self.text, self.graph_options)

    def add(
        self,
        index: Index,
        documents: Iterable[Document],
        *,
        on_error: OnError = "quarantine",
        progress: Progress = no_progress,
    ) -> tuple[Index, AddReport]:
        """`index` with `documents`, and what that took.

        A passage that is known costs nothing: its source is noted. A failed extraction leaves the passage
        in, found by its vector alone, and listed in the report; adding it again retries, unless the
        failure is permanent. With `on_error="fail"` failures raise `ExtractionError` at the end. A budget
        that is spent leaves out what it did not reach, and the report says what and why.
        """
        self._require_own(index)
        documents = documents_of(documents)
        clock = Clock()
        pieces = pieces_of(documents, self.chunker, self.text)
        passages = merged(index.passages, pieces)
        extracted = self._extract(passages, to_extract(index, pieces), on_error, progress, clock)
        for key in set(extracted.left) - index.passage_row.keys():
            del passages[key]
        pieces = [piece for piece in pieces if piece.passage_id in passages]
        built = self._build(index, passages, extracted, progress, clock)
        return built.index, self._add_report(index, len(documents), pieces, extracted, built, clock)

    def plan_add(self, index: Index, documents: Iterable[Document]) -> ChangePlan:
        """What `add` would do."""
        self._require_own(index)
        documents = documents_of(documents)
        return self._plan(index, len(documents), pieces_of(documents, self.chunker, self.text))

    def update(
        self,
        index: Index,
        source_id: str,
        documents: Iterable[Document],
        *,
        on_error: OnError = "quarantine",
        progress: Progress = no_progress,
    ) -> tuple[Index, UpdateReport]:
        """`index` with `documents` in the place of all that `source_id` held, and what that took.

        Passages that the source keeps are neither extracted nor embedded again; positions start at 0.
        The documents have this source_id or none. Failures are treated as in `add`. Raises `InputError`
        if the index has no such source, or if there are no documents.
        """
        self._require_own(index)
        documents = replacing(index, source_id, documents)
        clock = Clock()
        pieces = pieces_of(documents, self.chunker, self.text)
        passages = as_before(index.passages, merged(without(index.passages, {source_id}), pieces))
        todo = to_extract(index, pieces)
        # The old text must not go before the new one is in.
        extracted = self._extract(passages, todo, on_error, progress, clock, whole=True)
        built = self._build(index, passages, extracted, progress, clock)
        handed = {piece.passage_id for piece in pieces}
        left = [key for key in held_by(index.passages, source_id) if key not in handed]
        return built.index, UpdateReport(
            source_id,
            added=self._add_report(index, len(documents), pieces, extracted, built, clock),
            removed=RemoveReport(
                passages_removed=tuple(key for key in left if key not in passages),
                passages_kept=tuple(key for key in left if key in passages),
                phrases_removed=built.phrases_removed,
                facts_removed=built.facts_removed,
            ),
        )

    def plan_update(self, index: Index, source_id: str, documents: Iterable[Document]) -> ChangePlan:
        """What `update` would do."""
        self._require_own(index)
        documents = replacing(index, source_id, documents)
        pieces = pieces_of(documents, self.chunker, self.text)
        stay = {passage.id for passage in without(index.passages, {source_id})}
        stay |= {piece.passage_id for piece in pieces}
        gone = tuple(key for key in held_by(index.passages, source_id) if key not in stay)
        return self._plan(index, len(documents), pieces, gone)

    def remove(
        self,
        index: Index,
        *,
        source_ids: Sequence[str] = (),
        passage_ids: Sequence[str] = (),
        texts: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> tuple[Index, RemoveReport]:
        """`index` without what is named, and a report.

        A passage named by a source that goes stays for its other sources; one named by its id or its
        text goes whatever sources hold it. What is not in the index is listed in `not_found`.
        """
        self._require_own(index)
        for name, values in (("source_ids", source_ids), ("passage_ids", passage_ids), ("texts", texts)):
            if isinstance(values, str):
                raise InputError(f"{name} must be a list of strings, got the string {values!r:.80}")
            for value in values:
                require_text(value, f"one of {name}")
        by_text = {text: self.text.passage_id(text) for text in texts}
        doomed = set(passage_ids) | set(by_text.values())
        left = without((p for p in index.passages if p.id not in doomed), set(source_ids))
        passages = {passage.id: passage for passage in left}
        built = self._build(index, passages, Extracted.nothing(self.text), progress, Clock())
        known_sources = {s.source_id for p in index.passages for s in p.sources}
        return built.index, RemoveReport(
            passages_removed=tuple(p.id for p in index.passages if p.id not in passages),
            passages_kept=tuple(p.id for p in left if p is not index.passages[index.passage_row[p.id]]),
            phrases_removed=built.phrases_removed,
            facts_removed=built.facts_removed,
            not_found=(
                *(s for s in dict.fromkeys(source_ids) if s not in known_sources),
                *(p for p in dict.fromkeys(passage_ids) if p not in index.passage_row),
                *(text for text, key in by_text.items() if key not in index.passage_row),
            ),
        )

    def retry_failed(
        self,
        index: Index,
        *,
        permanent: bool = False,
        on_error: OnError = "quarantine",
        progress: Progress = no_progress,
    ) -> tuple[Index, ExtractReport]:
        """`index` with its failed passages extracted again; the permanent failures too if asked for."""
        self._require_own(index)
        return self._again(index, failed_ids(index, permanent=permanent), on_error, progress)

    def plan_retry_failed(self, index: Index, *, permanent: bool = False) -> ChangePlan:
        """What `retry_failed` would do."""
        self._require_own(index)
        return self._plan_again(index, failed_ids(index, permanent=permanent))

    def reextract(
        self,
        index: Index,
        *,
        producer: str | None = None,
        on_error: OnError = "quarantine",
        progress: Progress = no_progress,
    ) -> tuple[Index, ExtractReport]:
        """`index` with all passages extracted again, or those whose extraction `producer` made.

        A passage that had a good extraction keeps it if the new one fails, and is listed as failed. Raises
        `InputError` if no extraction has this producer.
        """
        self._require_own(index)
        return self._again(index, produced_by(index, producer), on_error, progress)

    def plan_reextract(self, index: Index, *, producer: str | None = None) -> ChangePlan:
        """What `reextract` would do."""
        self._require_own(index)
        return self._plan_again(index, produced_by(index, producer))

    def rebuild(self, index: Index, *, progress: Progress = no_progress) -> Index:
        """The index of the same passages and extractions, all else made anew and as this indexer has it.

        Every passage, phrase and fact is embedded. Raises `CompatibilityError` if passages have ids of
        another kind.
        """
        if index.text.content_id != self.text.content_id:
            raise CompatibilityError(
                f"the index names its passages by {index.text.content_id}, this indexer by "
                f"{self.text.content_id}; use text.content_id={index.text.content_id}, or add the documents "
                "to an empty index"
            )
        none = torch.empty(0, dtype=torch.int64)
        change = VocabularyChange(Vocabulary.of(index.extractions, self.text), none, none)
        return assemble(
            self.empty(),
            index.passages,
            none,
            change,
            extractions=index.extractions,
            failed=index.failed,
            embedder=self.embedder,
            progress=progress,
            clock=Clock(),
        )

    def rebuild_graph(self, index: Index, *, progress: Progress = no_progress) -> Index:
        """The same index with the graph of this indexer's graph options. No model is asked."""
        return regraphed(index, self.graph_options, progress)

    def _require_own(self, index: Index) -> None:
        for name, theirs, ours, way_out in (
            ("embedder", index.embedder, self.embedder.identity, "embed it again"),
            ("text options", index.text, self.text, "build it again"),
            ("graph options", index.graph_options, self.graph_options, "build it again"),
        ):
            if theirs != ours:
                raise CompatibilityError(
                    f"the index was built with the {name} {theirs}, this indexer has {ours}; "
                    f"use the same, or {way_out} with these"
                )

    def _extract(
        self,
        passages: Mapping[str, Passage],
        todo: Sequence[str],
        on_error: OnError,
        progress: Progress,
        clock: Clock,
        *,
        whole: bool = False,
    ) -> Extracted:
        with clock("extract"):
            chosen = [passages[key] for key in todo]
            return extract(
                self.extractor, chosen, self.text, on_error=on_error, progress=progress, whole=whole
            )

    def _build(
        self,
        index: Index,
        passages: Mapping[str, Passage],
        extracted: Extracted,
        progress: Progress,
        clock: Clock,
    ) -> Built:
        return build(index, passages, extracted, embedder=self.embedder, progress=progress, clock=clock)

    def _add_report(
        self,
        index: Index,
        num_documents: int,
        pieces: Sequence[Piece],
        extracted: Extracted,
        built: Built,
        clock: Clock,
    ) -> AddReport:
        by_source = passages_by_source(pieces)
        handed = set[str]().union(*by_source.values())
        new = handed - index.passage_row.keys()
        failed = {failure.passage_id for failure in extracted.failed}
        added = [key for key in extracted.extractions if key in new]
        cut = self.embedder.truncated([extracted.passages[key].text for key in added], "passage")
        return AddReport(
            documents=num_documents,
            passages_added=len(new),
            passages_known=len(handed) - len(new),
            phrases_added=built.phrases_added,
            facts_added=built.facts_added,
            failed=extracted.failed,
            truncated=tuple(key for key, is_cut in zip(added, cut, strict=True) if is_cut),
            without_facts=extracted.without_facts,
            dropped=extracted.dropped,
            seconds=clock.seconds,
            sources={
                source_id: SourceReport(len(keys & new), len(keys - new), len(keys & failed))
                for source_id, keys in by_source.items()
            },
            usage=extracted.usage,
            left=extracted.left,
            stopped=extracted.stopped,
        )

    def _again(
        self, index: Index, todo: Sequence[str], on_error: OnError, progress: Progress
    ) -> tuple[Index, ExtractReport]:
        clock = Clock()
        passages = {passage.id: passage for passage in index.passages}
        extracted = self._extract(passages, todo, on_error, progress, clock)
        built = self._build(index, passages, extracted.replacing(index.failed), progress, clock)
        return built.index, ExtractReport(
            passages=tuple(key for key in todo if key not in extracted.left),
            phrases_added=built.phrases_added,
            phrases_removed=built.phrases_removed,
            facts_added=built.facts_added,
            facts_removed=built.facts_removed,
            failed=extracted.failed,
            without_facts=extracted.without_facts,
            dropped=extracted.dropped,
            seconds=clock.seconds,
            usage=extracted.usage,
            left=extracted.left,
            stopped=extracted.stopped,
        )

    def _plan(
        self, index: Index, num_documents: int, pieces: Sequence[Piece], removed: tuple[str, ...] = ()
    ) -> ChangePlan:
        handed = {piece.passage_id: Passage(piece.passage_id, piece.text) for piece in pieces}
        todo = to_extract(index, pieces)
        num_new = len(handed.keys() - index.passage_row.keys())
        return ChangePlan(
            documents=num_documents,
            passages_new=num_new,
            passages_known=len(handed) - num_new,
            passages_retried=len(todo) - num_new,
            passages_removed=removed,
            extractor_calls=len(todo) * self.extractor.calls_per_passage,
            usage=estimated(self.extractor, [handed[key] for key in todo]),
        )

    def _plan_again(self, index: Index, todo: Sequence[str]) -> ChangePlan:
        return ChangePlan(
            passages_known=len(todo),
            passages_retried=sum(key in index.failed for key in todo),
            extractor_calls=len(todo) * self.extractor.calls_per_passage,
            usage=estimated(self.extractor, [index.passages[index.passage_row[key]] for key in todo]),
        )
