"""Documents in, a new index out: chunk → extract → embed → connect."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.check import embedded
from hipporag_torch.errors import BackendError, CompatibilityError, InputError
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, build_graph
from hipporag_torch.index import Index, Vocabulary
from hipporag_torch.ops.pairs import Pairs, similar_pairs
from hipporag_torch.protocols import Embedder, Extractor, Progress, no_progress
from hipporag_torch.reports import AddReport, FailedPassage, RemoveReport
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Extraction, Passage, Role, Source, require_text

Key = TypeVar("Key")


class Indexer:
    """Makes indexes of one identity: one embedder, one extractor, one way to key text and weigh edges.

    add(A) then add(B) = add(A + B) = add(B) then add(A), and add(A + B) then remove(B) = add(A): the
    rows of an index are canonical and its graph is a function of its passages. Only new passages
    are extracted, only new passages, phrases and facts are embedded.
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        extractor: Extractor,
        text: TextOptions | None = None,
        graph: AnyGraphOptions | None = None,
    ) -> None:
        self.embedder = embedder
        self.extractor = extractor
        self.text = text or TextOptions()
        self.graph_options = graph or GraphOptions()

    def empty(self) -> Index:
        """An index without passages."""
        none = torch.empty(0, self.embedder.identity.dim)
        vocabulary = Vocabulary.of((), self.text)
        graph = build_graph((), 0, vocabulary.statements, Pairs.none(), self.graph_options)
        return Index(
            embedder=self.embedder.identity,
            text=self.text,
            graph_options=self.graph_options,
            passages=(),
            extractions=(),
            phrases=(),
            facts=(),
            statements=vocabulary.statements,
            passage_emb=none,
            phrase_emb=none,
            fact_emb=none,
            synonyms=Pairs.none(),
            graph=graph,
        )

    def add(
        self, index: Index, documents: Iterable[Document], progress: Progress = no_progress
    ) -> tuple[Index, AddReport]:
        """`index` with `documents`, and what that took; `index` itself stays as it is.

        A document whose text is known costs nothing: its source is noted. A failed extraction leaves
        the passage in, found by its vector alone, and listed in the report; adding it again retries.
        Raises `CompatibilityError` if `index` was not made by an indexer of this identity.
        """
        self._require_own(index)
        if isinstance(documents, Document | str):
            raise InputError(f"documents must be a list, got one {type(documents).__name__}")
        documents = list(documents)
        clock = _Clock()
        passages = self._merge_sources(index, documents)
        extractions = _extractions_of(index)
        handed = {self.text.passage_id(document.text) for document in documents}
        todo = sorted(k for k in handed if k not in extractions or extractions[k].status == "failed")
        with clock("extract"):
            extracted = dict(zip(todo, self._extract([passages[k] for k in todo], progress), strict=True))
        new = self._build(index, passages, extractions | extracted, progress, clock)
        added = [key for key in todo if key not in index.passage_row]
        cut = self.embedder.truncated([passages[key].text for key in added], "passage")
        return new, AddReport(
            documents=len(documents),
            passages_added=len(added),
            passages_known=len(handed) - len(added),
            phrases_added=len(set(new.phrases) - set(index.phrases)),
            facts_added=len(set(new.facts) - set(index.facts)),
            failed=tuple(
                FailedPassage(key, tuple(s.source_id for s in passages[key].sources), extraction.reason)
                for key, extraction in extracted.items()
                if extraction.status == "failed"
            ),
            truncated=tuple(key for key, is_cut in zip(added, cut, strict=True) if is_cut),
            without_facts=tuple(
                key
                for key, extraction in extracted.items()
                if extraction.status != "failed" and not any(map(self.text.fact, extraction.triples))
            ),
            dropped=self._dropped(list(extracted.values())),
            seconds=clock.seconds,
        )

    def remove(
        self,
        index: Index,
        *,
        source_ids: Sequence[str] = (),
        passage_ids: Sequence[str] = (),
        texts: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> tuple[Index, RemoveReport]:
        """`index` without what is named, and a report; `index` itself stays as it is.

        A passage named by a source that goes stays for its other sources; one named by its id or its
        text goes whatever sources hold it. What is not in the index is listed in `not_found`.
        Raises `CompatibilityError` if `index` was not made by an indexer of this identity.
        """
        self._require_own(index)
        for name, values in (("source_ids", source_ids), ("passage_ids", passage_ids), ("texts", texts)):
            if isinstance(values, str):
                raise InputError(f"{name} must be a list of strings, got the string {values!r:.80}")
            for value in values:
                require_text(value, f"one of {name}")
        by_text = {text: self.text.passage_id(text) for text in texts}
        doomed = set(passage_ids) | set(by_text.values())
        gone_sources = set(source_ids)
        passages: dict[str, Passage] = {}
        kept: list[str] = []
        for passage in index.passages:
            sources = tuple(s for s in passage.sources if s.source_id not in gone_sources)
            if passage.id in doomed or not sources:
                continue
            if len(sources) < len(passage.sources):
                kept.append(passage.id)
            passages[passage.id] = replace(passage, sources=sources)
        new = self._build(index, passages, _extractions_of(index), progress, _Clock())
        known_sources = {s.source_id for p in index.passages for s in p.sources}
        return new, RemoveReport(
            passages_removed=tuple(p.id for p in index.passages if p.id not in passages),
            passages_kept=tuple(kept),
            phrases_removed=len(index.phrases) - len(new.phrases),
            facts_removed=len(index.facts) - len(new.facts),
            not_found=(
                *(s for s in dict.fromkeys(source_ids) if s not in known_sources),
                *(p for p in dict.fromkeys(passage_ids) if p not in index.passage_row),
                *(text for text, key in by_text.items() if key not in index.passage_row),
            ),
        )

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

    def _merge_sources(self, index: Index, documents: Sequence[Document]) -> dict[str, Passage]:
        """All passages, old and new, by id, with the sources that now hold them.

        A document that its source holds already keeps its position and brings its metadata up to date.
        """
        passages = {passage.id: passage for passage in index.passages}
        next_position: Counter[str] = Counter()
        for source in (s for passage in index.passages for s in passage.sources):
            next_position[source.source_id] = max(next_position[source.source_id], source.position + 1)
        for document in documents:
            if not isinstance(document, Document):
                raise InputError(
                    f"expected a Document, got {type(document).__name__}: {document!r:.80}; Document(text=…)"
                )
            key = self.text.passage_id(document.text)
            passage = passages.get(key) or Passage(key, document.text)
            sources = {source.source_id: source for source in passage.sources}
            source_id = document.source_id or key
            if source_id in sources:
                position = sources[source_id].position
            else:
                position = next_position[source_id]
                next_position[source_id] += 1
            sources[source_id] = Source(source_id, position, document.metadata)
            passages[key] = replace(passage, sources=tuple(sources[s] for s in sorted(sources)))
        return passages

    def _extract(self, passages: Sequence[Passage], progress: Progress) -> list[Extraction]:
        extracted = self.extractor.extract(passages, progress) if passages else []
        if len(extracted) != len(passages):
            raise BackendError(
                f"the extractor gave {len(extracted)} extractions for {len(passages)} passages; "
                "expected one for each, in order"
            )
        return extracted

    def _build(
        self,
        index: Index,
        by_id: Mapping[str, Passage],
        extraction_of: Mapping[str, Extraction],
        progress: Progress,
        clock: "_Clock",
    ) -> Index:
        """The index of these passages, taking from `index` the vectors and synonyms that it has."""
        passages = tuple(by_id[key] for key in sorted(by_id))
        extractions = tuple(extraction_of[passage.id] for passage in passages)
        with clock("vocabulary"):
            vocabulary = Vocabulary.of(extractions, self.text)
        with clock("embed"):
            passage_ids, old_ids = [p.id for p in passages], [p.id for p in index.passages]
            texts = [p.text for p in passages]
            passage_emb, _ = self._rows(passage_ids, texts, old_ids, index.passage_emb, "passage", progress)
            phrase_emb, phrase_idx = self._rows(
                vocabulary.phrases,
                list(vocabulary.phrases),
                index.phrases,
                index.phrase_emb,
                "phrase",
                progress,
            )
            texts = [self.text.fact_text(fact) for fact in vocabulary.facts]
            fact_emb, _ = self._rows(vocabulary.facts, texts, index.facts, index.fact_emb, "fact", progress)
        with clock("synonyms"):
            is_new = torch.ones(len(vocabulary.phrases), dtype=torch.bool)
            is_new[phrase_idx[phrase_idx >= 0]] = False
            found = similar_pairs(
                phrase_emb,
                threshold=self.graph_options.synonym_threshold,
                new=None if bool(is_new.all()) else is_new,
                progress=progress,
            )
            synonyms = index.synonyms.renumbered(phrase_idx).merged(found)
        with clock("graph"):
            graph = build_graph(
                vocabulary.phrases, len(passages), vocabulary.statements, synonyms, self.graph_options
            )
        return Index(
            embedder=index.embedder,
            text=self.text,
            graph_options=self.graph_options,
            passages=passages,
            extractions=extractions,
            phrases=vocabulary.phrases,
            facts=vocabulary.facts,
            statements=vocabulary.statements,
            passage_emb=passage_emb,
            phrase_emb=phrase_emb,
            fact_emb=fact_emb,
            synonyms=synonyms,
            graph=graph,
        )

    def _dropped(self, extractions: Sequence[Extraction]) -> dict[str, int]:
        """Malformed entries by kind, with the triples that normalisation leaves without a key."""
        total = Counter[str]()
        for extraction in extractions:
            total.update(extraction.dropped)
            total["empty_key"] += sum(self.text.fact(triple) is None for triple in extraction.triples)
        return dict(sorted((+total).items()))

    def _rows(
        self,
        keys: Sequence[Key],
        texts: list[str],
        old_keys: Sequence[Key],
        old_emb: Float32[Tensor, "old dim"],
        role: Role,
        progress: Progress,
    ) -> tuple[Float32[Tensor, "new dim"], Tensor]:
        """The vectors of `keys`, embedding the texts of new ones only, and each old row's new row or -1."""
        row = {key: i for i, key in enumerate(keys)}
        new_idx = torch.tensor([row.get(key, -1) for key in old_keys], dtype=torch.int64)
        emb = torch.empty(len(keys), old_emb.shape[1])
        alive = new_idx >= 0
        emb[new_idx[alive]] = old_emb[alive].cpu()
        known = torch.zeros(len(keys), dtype=torch.bool)
        known[new_idx[alive]] = True
        missing = (~known).nonzero()[:, 0]
        if len(missing):
            chosen = [texts[i] for i in missing.tolist()]
            emb[missing] = embedded(self.embedder, chosen, role, progress)
        return emb, new_idx


@dataclass
class _Clock:
    """Seconds per stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, stage: str):
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def _extractions_of(index: Index) -> dict[str, Extraction]:
    return {p.id: extraction for p, extraction in zip(index.passages, index.extractions, strict=True)}
