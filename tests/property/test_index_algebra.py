import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, ReferenceGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Extraction, Passage, Progress, Triple, no_progress

SETTINGS = settings(deadline=None, max_examples=60)
# Shared facts, two spellings in one passage, near phrases, digits, no keys, nothing, and a failure.
STATED = {
    "t0": [("Oslo Harbour", "lies in", "Norway"), ("oslo harbour", "lies in", "Norway")],
    "t1": [("Oslo Harbours", "lie in", "Norway"), ("Ana", "works at", "Acme")],
    "t2": [("Ana", "works at", "Acme"), ("Acme", "works at", "Ana"), ("Acme", "is", "Acme")],
    "t3": [("Oslo Harbou", "lies in", "Norwayy"), ("flood of 1963", "hit", "Oslo Harbour")],
    "t4": [("flood of 1964", "hit", "Oslo Harbours"), ("flood in 1963", "hit", "Norway")],
    "t5": [("北京", "位于", "中国"), ("北京市", "位于", "中国"), ("\u200b", "is", "Ana")],
    "t6": [],
}
TEXTS = [*STATED, "t7"]
# Low and narrow enough that lists overflow, and a pair comes back when a closer one goes.
GRAPH = {"synonym_threshold": 0.4, "synonym_cap": 1}
IDENTITIES = st.sampled_from(
    [
        (TextOptions(), GraphOptions(**GRAPH)),
        (TextOptions(fact_template="repr"), GraphOptions(**(GRAPH | {"synonym_same_digits": False}))),
        (
            TextOptions(normalisation="reference", content_id="md5"),
            ReferenceGraphOptions(**GRAPH),
        ),
    ]
)


class FakeExtractor:
    """States what the table says; what is not in it fails, always."""

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [
            Extraction(triples=tuple(Triple(*triple) for triple in STATED[passage.text]))
            if passage.text in STATED
            else Extraction(status="failed", reason="no reply")
            for passage in passages
        ]


def document(text: str, holder: str) -> Document:
    """Every source holds one text, so that no position depends on what came before."""
    return Document(text, f"{holder}/{text}" if holder else None, {"holder": holder})


DOCUMENTS = st.builds(document, st.sampled_from(TEXTS), st.sampled_from(["", "a", "b"]))


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


@st.composite
def histories(draw: st.DrawFn, text: TextOptions) -> list[list[Document] | Removal]:
    ids = [text.passage_id(t) for t in TEXTS]
    names = {
        "source_ids": [f"{holder}/{t}" for holder in "ab" for t in TEXTS] + ids,
        "passage_ids": ids,
        "texts": [*TEXTS, "unknown"],
    }
    removal = st.sampled_from(sorted(names)).flatmap(
        lambda kind: st.builds(
            Removal, st.just(kind), st.lists(st.sampled_from(names[kind]), max_size=5).map(tuple)
        )
    )
    return draw(st.lists(st.lists(DOCUMENTS, max_size=5) | removal, min_size=1, max_size=6))


def indexer_of(text: TextOptions, graph: AnyGraphOptions) -> Indexer:
    return Indexer(embedder=HashingEmbedder(dim=32), extractor=FakeExtractor(), text=text, graph=graph)


def tensors_of(index: Index) -> dict[str, Tensor]:
    statements, synonyms, adjacency = index.statements, index.synonyms, index.graph.adjacency
    return {
        "passage_idx": statements.passage_idx,
        "fact_idx": statements.fact_idx,
        "subject_idx": statements.subject_idx,
        "object_idx": statements.object_idx,
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
    }


def assert_same(got: Index, expected: Index) -> None:
    """Equal to the bit, in every part."""
    for part in ("embedder", "text", "graph_options", "passages", "extractions", "phrases", "facts"):
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


BATCH = st.lists(DOCUMENTS, max_size=8)


@SETTINGS
@given(identity=IDENTITIES, data=st.data())
def test_any_history_ends_at_the_build_of_what_is_left(
    identity: tuple[TextOptions, AnyGraphOptions], data: st.DataObject
) -> None:
    indexer = indexer_of(*identity)
    index = indexer.empty()
    left: list[Document] = []
    for step in data.draw(histories(identity[0])):
        old, before = index, copy.deepcopy(index)
        if isinstance(step, Removal):
            index, report = indexer.remove(index, **{step.kind: step.names})
            left = [document for document in left if step.leaves(document, identity[0])]
            assert len(report.passages_removed) == len(old.passages) - len(index.passages)
        else:
            index, report = indexer.add(index, step)
            left += step
            assert report.passages_added == len(index.passages) - len(old.passages)
            assert report.phrases_added == len(index.phrases) - len(old.phrases)
        assert_same(old, before)
    left = data.draw(st.permutations(left))
    assert_same(index, added(indexer, indexer.empty(), left))
    index.graph.validate()


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
