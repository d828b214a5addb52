import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractions import Extractions
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, ReferenceGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Extractor
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Extraction, Passage, Progress, Sentence, Triple, no_progress

SETTINGS = settings(deadline=None, max_examples=60)
# Shared facts, two spellings in one passage, near phrases, digits, no keys, nothing, sentences (one shared),
# names that other texts hold, and a failure.
STATED: dict[str, list[tuple[Any, ...]]] = {
    "t0": [("Oslo Harbour", "lies in", "Norway"), ("oslo harbour", "lies in", "Norway")],
    "t1": [("Oslo Harbours", "lie in", "Norway"), ("Ana", "works at", "Acme")],
    "t2": [("Ana", "works at", "Acme"), ("Acme", "works at", "Ana"), ("Acme", "is", "Acme")],
    "t3": [("Oslo Harbou", "lies in", "Norwayy"), ("flood of 1963", "hit", "Oslo Harbour")],
    "t4": [("flood of 1964", "hit", "Oslo Harbours"), ("flood in 1963", "hit", "Norway")],
    "t5": [("北京", "位于", "中国"), ("北京市", "位于", "中国"), ("\u200b", "is", "Ana")],
    "t6": [],
    "Oslo Harbour met Ana": [
        ("Ana of  Acme.", ("Ana", "ACME", "acme")),
        ("Nothing.", ()),
        ("rain", "is", "rain"),
    ],
    "rain in 中国": [
        ("Ana of Acme.", ("Norway", "\u200b")),
        ("Oslo", ("oslo", "Norway")),
        ("Ana", "is", "Zz"),
    ],
}
TEXTS = [*STATED, "t7"]
# Low and narrow enough that lists overflow, and a pair comes back when a closer one goes.
GRAPH = {"synonym_threshold": 0.4, "synonym_cap": 1}
IDENTITIES = st.sampled_from(
    [
        (TextOptions(), GraphOptions(**GRAPH)),
        (TextOptions(), GraphOptions(**GRAPH, mention_weight=0.25)),
        (TextOptions(fact_template="repr"), GraphOptions(**(GRAPH | {"synonym_same_digits": False}))),
        (
            TextOptions(normalisation="reference", content_id="md5"),
            ReferenceGraphOptions(**GRAPH),
        ),
    ]
)


class FakeExtractor:
    """States what the table says, `version` lines further down; `failing` fails, and t7 for good."""

    calls_per_passage = 1

    def __init__(self) -> None:
        self.version = 0
        self.failing: frozenset[str] = frozenset()

    @property
    def producer(self) -> str:
        return f"v{self.version}"

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [self.extraction(passage.text) for passage in passages]

    def extraction(self, text: str) -> Extraction:
        if text not in STATED or text in self.failing:
            return Extraction(
                status="failed", reason="no reply", permanent=text not in STATED, producer=self.producer
            )
        line = list(STATED.values())[(list(STATED).index(text) + self.version) % len(STATED)]
        return Extraction(
            entities=("中国",),
            triples=tuple(Triple(*said) for said in line if len(said) == 3),
            sentences=tuple((Sentence(said[0]), said[1]) for said in line if len(said) == 2),
            producer=self.producer,
        )


class GivenExtractor:
    """Gives what is written down, text by text."""

    producer = "given"
    calls_per_passage = 0

    def __init__(self, extractions: Mapping[str, Extraction]) -> None:
        self._extractions = extractions

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [self._extractions[passage.text] for passage in passages]


def document(text: str, holder: str) -> Document:
    """Every source holds one text, so that no position depends on what came before."""
    return Document(text, f"{holder}/{text}" if holder else None, {"holder": holder})


DOCUMENTS = st.builds(document, st.sampled_from(TEXTS), st.sampled_from(["", "a", "b"]))
BATCH = st.lists(DOCUMENTS, max_size=8)


@dataclass(frozen=True)
class Removal:
    """One kind of name, and what is named by it; some of it is not there."""

    kind: str
    names: tuple[str, ...]

    def leaves(self, document: Document, text: TextOptions) -> bool:
        passage_id = text.passage_id(document.text)
        name = {
            "source_ids": document.source_id or passage_id,
            "passage_ids": passage_id,
            "texts": document.text,
        }[self.kind]
        return name not in self.names


@dataclass(frozen=True)
class Put:
    """One source gets these texts in the place of all others."""

    source_id: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Mend:
    """Passages are extracted again: those that failed, or those of a producer, or all."""

    kind: str
    permanent: bool = False
    producer: str | None = None


@dataclass(frozen=True)
class Step:
    """A change, and what the extractor is like at that time; afterwards the extractions may go to a store."""

    change: "list[Document] | Removal | Put | Mend"
    version: int
    failing: frozenset[str]
    stored: bool


PUTS = st.builds(
    Put, st.sampled_from(["u0", "u1"]), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4).map(tuple)
)
MENDS = st.builds(Mend, st.just("retry"), permanent=st.booleans()) | st.builds(
    Mend, st.just("reextract"), producer=st.sampled_from([None, "v0", "v1"])
)


def removals(text: TextOptions) -> st.SearchStrategy[Removal]:
    ids = [text.passage_id(t) for t in TEXTS]
    names = {
        "source_ids": [f"{holder}/{t}" for holder in "ab" for t in TEXTS] + ids + ["u0", "u1"],
        "passage_ids": ids,
        "texts": [*TEXTS, "unknown"],
    }
    return st.sampled_from(sorted(names)).flatmap(
        lambda kind: st.builds(
            Removal, st.just(kind), st.lists(st.sampled_from(names[kind]), max_size=5).map(tuple)
        )
    )


def histories(text: TextOptions) -> st.SearchStrategy[list[Step]]:
    changes = st.lists(DOCUMENTS, max_size=5) | removals(text) | PUTS | MENDS
    steps = st.builds(
        Step,
        changes,
        st.sampled_from([0, 1]),
        st.frozensets(st.sampled_from(TEXTS), max_size=3),
        st.booleans(),
    )
    return st.lists(steps, min_size=1, max_size=7)


class Model:
    """An index by its documents and extractions alone, kept by the rules that the indexer states."""

    def __init__(self, text: TextOptions, extractor: FakeExtractor) -> None:
        self.text = text
        self.extractor = extractor
        self.left: list[Document] = []
        self.extractions: dict[str, Extraction] = {}

    def apply(self, change: list[Document] | Removal | Put | Mend) -> None:
        if isinstance(change, Removal):
            self.left = [document for document in self.left if change.leaves(document, self.text)]
        elif isinstance(change, Mend):
            for text, before in self.extractions.items():
                if self._meant(change, before):
                    now = self.extractor.extraction(text)
                    self.extractions[text] = before if now.status == "failed" != before.status else now
        else:
            handed = documents_of(change)
            if isinstance(change, Put):
                self.left = [document for document in self.left if document.source_id != change.source_id]
            self.left += handed
            for text in (document.text for document in handed):
                before = self.extractions.get(text)
                if before is None or (before.status == "failed" and not before.permanent):
                    self.extractions[text] = self.extractor.extraction(text)
        alive = {document.text for document in self.left}
        self.extractions = {text: e for text, e in self.extractions.items() if text in alive}

    def _meant(self, change: Mend, before: Extraction) -> bool:
        if change.kind == "retry":
            return before.status == "failed" and (change.permanent or not before.permanent)
        return change.producer in (None, before.producer)


def documents_of(change: list[Document] | Put) -> list[Document]:
    if isinstance(change, Put):
        return [Document(text, change.source_id, {"n": n}) for n, text in enumerate(change.texts)]
    return change


def applied(indexer: Indexer, index: Index, change: list[Document] | Removal | Put | Mend) -> Index:
    """`index` after the change; its report says by how much rows grew or shrank."""
    if isinstance(change, Removal):
        new, report = indexer.remove(index, **{change.kind: change.names})
        come, gone = 0, report.phrases_removed
        assert len(report.passages_removed) == len(index.passages) - len(new.passages)
    elif isinstance(change, Put) and any(
        change.source_id == s.source_id for p in index.passages for s in p.sources
    ):
        plan = indexer.plan_update(index, change.source_id, documents_of(change))
        new, report = indexer.update(index, change.source_id, documents_of(change))
        come, gone = report.added.phrases_added, report.removed.phrases_removed
        removed = report.removed.passages_removed
        assert len(new.passages) == len(index.passages) + report.added.passages_added - len(removed)
        assert (plan.passages_new, plan.passages_removed) == (report.added.passages_added, removed)
    elif isinstance(change, Mend):
        if change.producer is not None and change.producer not in {e.producer for e in index.extractions}:
            return index
        if change.kind == "retry":
            new, report = indexer.retry_failed(index, permanent=change.permanent)
        else:
            new, report = indexer.reextract(index, producer=change.producer)
        come, gone = report.phrases_added, report.phrases_removed
    else:
        plan = indexer.plan_add(index, documents_of(change))
        new, report = indexer.add(index, documents_of(change))
        come, gone = report.phrases_added, 0
        assert report.passages_added == plan.passages_new == len(new.passages) - len(index.passages)
    assert len(new.phrases) == len(index.phrases) + come - gone
    return new


def stored(index: Index, *, readable: bool) -> Index:
    """As if it came from a store; if not `readable`, asking for an extraction fails."""
    rows = dict(enumerate(index.extractions))

    def read() -> dict[int, Extraction]:
        assert readable
        return rows

    return replace(index, extractions=Extractions(count=len(rows), fresh={}, stored=read))


def ranked(index: Index) -> Index:
    """With the positions of each source counted from 0 without gaps."""
    held: dict[str, list[int]] = {}
    for source in (s for passage in index.passages for s in passage.sources):
        held.setdefault(source.source_id, []).append(source.position)
    passages = tuple(
        replace(
            passage,
            sources=tuple(
                replace(s, position=sorted(held[s.source_id]).index(s.position)) for s in passage.sources
            ),
        )
        for passage in index.passages
    )
    return replace(index, passages=passages)


def indexer_of(text: TextOptions, graph: AnyGraphOptions, extractor: Extractor | None = None) -> Indexer:
    return Indexer(
        embedder=HashingEmbedder(dim=32), extractor=extractor or FakeExtractor(), text=text, graph=graph
    )


def tensors_of(index: Index) -> dict[str, Tensor]:
    statements, synonyms, adjacency = index.statements, index.synonyms, index.graph.adjacency
    return {
        "passage_idx": statements.passage_idx,
        "fact_idx": statements.fact_idx,
        "subject_idx": statements.subject_idx,
        "object_idx": statements.object_idx,
        "named_ends": statements.named,
        "named": index.named,
        "phrase_token_ptr": index.lexicon.phrase_tokens.row_ptr,
        "phrase_tokens": index.lexicon.phrase_tokens.values,
        "fact_token_ptr": index.lexicon.fact_tokens.row_ptr,
        "fact_tokens": index.lexicon.fact_tokens.values,
        "passage_emb": index.passage_emb,
        "phrase_emb": index.phrase_emb,
        "fact_emb": index.fact_emb,
        "first_idx": synonyms.first_idx,
        "second_idx": synonyms.second_idx,
        "cosine": synonyms.cosine,
        "row_ptr": adjacency.row_ptr,
        "col": adjacency.col,
        "weight": adjacency.weight,
        "passages_per_phrase": index.passages_per_phrase,
        "fact_end_ptr": index.fact_ends.row_ptr,
        "fact_ends": index.fact_ends.values,
    }


def assert_same(got: Index, expected: Index) -> None:
    """Equal to the bit, in every part."""
    same = ("embedder", "text", "graph_options", "passages", "extractions", "failed", "phrases", "facts")
    for part in same:
        assert getattr(got, part) == getattr(expected, part), part
    assert (got.graph.num_phrases, got.graph.num_passages) == (
        expected.graph.num_phrases,
        expected.graph.num_passages,
    )
    wanted = tensors_of(expected)
    for name, tensor in tensors_of(got).items():
        assert torch.equal(tensor, wanted[name]), name


def added(indexer: Indexer, index: Index, *batches: list[Document]) -> Index:
    for batch in batches:
        index, _ = indexer.add(index, batch)
    return index


@SETTINGS
@given(identity=IDENTITIES, data=st.data())
def test_any_history_ends_at_the_build_of_what_is_left(
    identity: tuple[TextOptions, AnyGraphOptions], data: st.DataObject
) -> None:
    extractor = FakeExtractor()
    indexer = indexer_of(*identity, extractor)
    index = indexer.empty()
    model = Model(identity[0], extractor)
    for step in data.draw(histories(identity[0])):
        extractor.version, extractor.failing = step.version, step.failing
        old, before = index, copy.deepcopy(index)
        index = applied(indexer, index, step.change)
        model.apply(step.change)
        assert_same(old, before)
        assert_same(index, indexer.rebuild(index))
        if step.stored:
            index = stored(index, readable=True)
    # Only the sources that are replaced as a whole hold several texts, in an order that counts.
    put = [document for document in model.left if document.metadata.keys() == {"n"}]
    others = data.draw(st.permutations([document for document in model.left if document not in put]))
    expected = indexer_of(*identity, GivenExtractor(model.extractions))
    assert_same(ranked(index), ranked(added(expected, expected.empty(), others + put)))
    index.graph.validate()


@SETTINGS
@given(identity=IDENTITIES, documents=BATCH, data=st.data())
def test_what_is_in_a_store_is_not_read_to_change_an_index(
    identity: tuple[TextOptions, AnyGraphOptions], documents: list[Document], data: st.DataObject
) -> None:
    indexer = indexer_of(*identity)
    index = added(indexer, indexer.empty(), documents, documents_of(Put("u0", ("t0", "t7"))))
    retry = st.builds(Mend, st.just("retry"), permanent=st.booleans())
    change = data.draw(st.lists(DOCUMENTS, max_size=5) | removals(identity[0]) | PUTS | retry)
    lazy = applied(indexer, stored(index, readable=False), change)
    eager = applied(indexer, index, change)
    known = {passage.id for passage in index.passages}
    made = {lazy.passages[row].id for row in lazy.extractions.fresh}
    tried = {p.id for p in lazy.passages if p.id not in known or p.id in index.failed}
    assert {p.id for p in lazy.passages} - known <= made <= tried
    lazy = applied(indexer, stored(index, readable=True), change)
    assert_same(lazy, eager)


@SETTINGS
@given(identity=IDENTITIES, first=BATCH, second=BATCH)
def test_batches_may_come_in_any_order_or_as_one(
    identity: tuple[TextOptions, AnyGraphOptions], first: list[Document], second: list[Document]
) -> None:
    indexer = indexer_of(*identity)
    together = added(indexer, indexer.empty(), first + second)
    assert_same(added(indexer, indexer.empty(), first, second), together)
    assert_same(added(indexer, indexer.empty(), second, first), together)


@SETTINGS
@given(identity=IDENTITIES, documents=BATCH, split=st.sets(st.sampled_from(TEXTS)))
def test_removing_what_was_added_leaves_what_was_before(
    identity: tuple[TextOptions, AnyGraphOptions], documents: list[Document], split: set[str]
) -> None:
    indexer = indexer_of(*identity)
    kept = [document for document in documents if document.text not in split]
    both = added(indexer, indexer.empty(), documents)
    assert_same(indexer.remove(both, texts=sorted(split))[0], added(indexer, indexer.empty(), kept))


@SETTINGS
@given(identity=IDENTITIES, documents=BATCH)
def test_adding_again_changes_nothing(
    identity: tuple[TextOptions, AnyGraphOptions], documents: list[Document]
) -> None:
    indexer = indexer_of(*identity)
    index = added(indexer, indexer.empty(), documents)
    again, report = indexer.add(index, documents)
    assert_same(again, index)
    assert (report.passages_added, report.passages_known) == (0, len(index.passages))
    assert (report.phrases_added, report.facts_added) == (0, 0)


@SETTINGS
@given(identity=IDENTITIES, documents=BATCH)
def test_removing_everything_leaves_the_empty_index(
    identity: tuple[TextOptions, AnyGraphOptions], documents: list[Document]
) -> None:
    indexer = indexer_of(*identity)
    index = added(indexer, indexer.empty(), documents)
    gone, report = indexer.remove(index, passage_ids=[passage.id for passage in index.passages])
    assert_same(gone, indexer.empty())
    assert report.passages_removed == tuple(passage.id for passage in index.passages)
    assert (report.phrases_removed, report.facts_removed) == (len(index.phrases), len(index.facts))
