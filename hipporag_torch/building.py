"""The next index from the last one: only what is new is embedded, compared and connected by name."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.connections import connect
from hipporag_torch.embedders.check import embedded
from hipporag_torch.extracted import Extracted
from hipporag_torch.extractions import Extractions
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.ops.pairs import Pairs, similar_pairs
from hipporag_torch.protocols import Embedder, Progress
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Passage, Role
from hipporag_torch.vocabulary import Vocabulary, VocabularyChange


@dataclass
class Clock:
    """Seconds per stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, stage: str):
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class Built:
    """An index, and how many phrases and facts came and went on the way to it."""

    index: Index
    phrases_added: int
    phrases_removed: int
    facts_added: int
    facts_removed: int


def empty_index(embedder: Embedder, text: TextOptions, graph_options: AnyGraphOptions) -> Index:
    """An index without passages."""
    none = torch.empty(0, embedder.identity.dim)
    vocabulary = Vocabulary.of((), text)
    return Index(
        embedder=embedder.identity,
        text=text,
        graph_options=graph_options,
        passages=(),
        extractions=Extractions.of(()),
        failed={},
        phrases=(),
        facts=(),
        statements=vocabulary.statements,
        lexicon=vocabulary.lexicon,
        passage_emb=none,
        phrase_emb=none,
        fact_emb=none,
        synonyms=Pairs.none(),
        graph=connect(vocabulary, (), Pairs.none(), graph_options),
    )


def build(
    old: Index,
    by_id: Mapping[str, Passage],
    extracted: Extracted,
    *,
    embedder: Embedder,
    progress: Progress,
    clock: Clock,
) -> Built:
    """The index of the passages `by_id`, taking from `old` what it has of them.

    `extracted` has the extractions of all passages that are not in `old`, and those that replace others.
    """
    passages = tuple(by_id[key] for key in sorted(by_id))
    row = {passage.id: row for row, passage in enumerate(passages)}
    passage_idx = torch.tensor([row.get(p.id, -1) for p in old.passages], dtype=torch.int64)
    with clock("vocabulary"):
        again = [old.passage_row[key] for key in extracted.extractions if key in old.passage_row]
        stating = passage_idx.index_fill(0, torch.tensor(again, dtype=torch.int64), -1)
        stated = {row[key]: said for key, said in extracted.stated.items()}
        change = old.vocabulary.changed(stating, stated)
    replaced = {row[key]: extraction for key, extraction in extracted.extractions.items()}
    extractions = old.extractions.changed(passage_idx, count=len(passages), replaced=replaced)
    failed = {k: v for k, v in old.failed.items() if k in row and k not in extracted.extractions}
    failed |= {failure.passage_id: failure.permanent for failure in extracted.failed}
    index = assemble(
        old,
        passages,
        passage_idx,
        change,
        extractions=extractions,
        failed=dict(sorted(failed.items())),
        embedder=embedder,
        progress=progress,
        clock=clock,
    )
    phrases_kept, facts_kept = _num_alive(change.phrase_idx), _num_alive(change.fact_idx)
    return Built(
        index,
        phrases_added=len(index.phrases) - phrases_kept,
        phrases_removed=len(old.phrases) - phrases_kept,
        facts_added=len(index.facts) - facts_kept,
        facts_removed=len(old.facts) - facts_kept,
    )


def assemble(
    old: Index,
    passages: tuple[Passage, ...],
    passage_idx: Int64[Tensor, " old_passages"],
    change: VocabularyChange,
    *,
    extractions: Extractions,
    failed: Mapping[str, bool],
    embedder: Embedder,
    progress: Progress,
    clock: Clock,
) -> Index:
    """Vectors, synonyms and the graph of these passages and this vocabulary.

    passage_idx: the row in `passages` of each old passage, or -1; what `change` holds for the others.
    """
    vocabulary = change.vocabulary
    phrases, facts, text = vocabulary.phrases, vocabulary.facts, old.text

    def vectors(
        rows: int, old_emb: Tensor, new_idx: Tensor, text_of: Callable[[int], str], role: Role
    ) -> Tensor:
        return _carried(rows, old_emb, new_idx, text_of, role, embedder, progress)

    with clock("embed"):
        passage_emb = vectors(
            len(passages), old.passage_emb, passage_idx, lambda i: passages[i].text, "passage"
        )
        phrase_emb = vectors(len(phrases), old.phrase_emb, change.phrase_idx, lambda i: phrases[i], "phrase")
        fact_emb = vectors(
            len(facts), old.fact_emb, change.fact_idx, lambda i: text.fact_text(facts[i]), "fact"
        )
    with clock("synonyms"):
        synonyms = _synonyms(old, phrase_emb, change.phrase_idx, progress)
    with clock("graph"):
        graph = connect(vocabulary, passages, synonyms, old.graph_options)
    return Index(
        embedder=old.embedder,
        text=text,
        graph_options=old.graph_options,
        passages=passages,
        extractions=extractions,
        failed=failed,
        phrases=phrases,
        facts=facts,
        statements=vocabulary.statements,
        lexicon=vocabulary.lexicon,
        passage_emb=passage_emb,
        phrase_emb=phrase_emb,
        fact_emb=fact_emb,
        synonyms=synonyms,
        graph=graph,
    )


def regraphed(index: Index, options: AnyGraphOptions, progress: Progress) -> Index:
    """`index` with the graph of other options; synonyms are searched again only below the old threshold."""
    threshold = options.synonym_threshold
    if threshold >= index.graph_options.synonym_threshold:
        near = index.synonyms.cosine >= threshold
        synonyms = Pairs(
            index.synonyms.first_idx[near], index.synonyms.second_idx[near], index.synonyms.cosine[near]
        )
    else:
        synonyms = similar_pairs(index.phrase_emb, threshold=threshold, progress=progress)
    graph = connect(index.vocabulary, index.passages, synonyms, options)
    graph = graph.to(index.graph.adjacency.weight.device)
    return replace(index, graph_options=options, synonyms=synonyms, graph=graph)


def _carried(
    num_rows: int,
    old_emb: Float32[Tensor, "old dim"],
    new_idx: Int64[Tensor, " old"],
    text_of: Callable[[int], str],
    role: Role,
    embedder: Embedder,
    progress: Progress,
) -> Float32[Tensor, "rows dim"]:
    """`num_rows` vectors: old row i at `new_idx[i]` unless that is -1, the others of their rows' texts."""
    source = torch.full((num_rows,), -1)
    alive = (new_idx >= 0).nonzero()[:, 0]
    source[new_idx[alive]] = alive
    missing = (source < 0).nonzero()[:, 0]
    if len(alive):
        emb = old_emb.index_select(0, source.clamp(min=0).to(old_emb.device)).cpu()
    else:
        emb = torch.empty(num_rows, old_emb.shape[1])
    if len(missing):
        texts: Sequence[str] = [text_of(row) for row in missing.tolist()]
        emb[missing] = embedded(embedder, texts, role, progress)
    return emb


def _synonyms(
    old: Index,
    phrase_emb: Float32[Tensor, "phrases dim"],
    phrase_idx: Int64[Tensor, " old_phrases"],
    progress: Progress,
) -> Pairs:
    """All pairs of phrases at or above the threshold: those that `old` has, and those of new phrases."""
    is_new = torch.ones(phrase_emb.shape[0], dtype=torch.bool)
    is_new[phrase_idx[phrase_idx >= 0]] = False
    kept = old.synonyms.renumbered(phrase_idx)
    if not bool(is_new.any()):
        return kept
    found = similar_pairs(
        phrase_emb,
        threshold=old.graph_options.synonym_threshold,
        new=None if bool(is_new.all()) else is_new,
        progress=progress,
    )
    return kept.merged(found)


def _num_alive(new_idx: Int64[Tensor, " old"]) -> int:
    return int((new_idx >= 0).sum())
