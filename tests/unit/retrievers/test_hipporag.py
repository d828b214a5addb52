import math
from collections.abc import Callable, Sequence

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import BackendError, CompatibilityError
from hipporag_torch.fact_filters import KeepAllFacts
from hipporag_torch.index import Index
from hipporag_torch.ops.ppr import PPROptions
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import ReferenceSeeding
from hipporag_torch.types import FilterDecision, Ranking, Triple

IndexOf = Callable[..., Index]

FACTS = {
    "Ada Vale founded Northwind Press in Bergen.": [
        ("Ada Vale", "founded", "Northwind Press"),
        ("Northwind Press", "founded in", "Bergen"),
    ],
    "Bergen lies on the west coast of Norway.": [("Bergen", "lies in", "Norway")],
    "Tove Lund maps glaciers for Northwind Press.": [("Tove Lund", "works for", "Northwind Press")],
    "Rye bread is baked aboard.": [],
}
QUESTIONS = ["Who founded Northwind Press?", "Where does Tove Lund work?", "Which country holds Bergen?"]
EMBEDDER = HashingEmbedder(dim=64)
X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


class FakeFilter:
    """Decides by a function of the question's number and the facts shown to it."""

    def __init__(self, decide: Callable[[int, Sequence[Triple]], FilterDecision]) -> None:
        self._decide = decide
        self.shown: list[Sequence[Triple]] = []

    def select(
        self, questions: Sequence[str], candidates: Sequence[Sequence[Triple]]
    ) -> list[FilterDecision]:
        self.shown += candidates
        return [self._decide(number, shown) for number, shown in enumerate(candidates)]


class FixedDecisions:
    def __init__(self, *decisions: FilterDecision) -> None:
        self._decisions = decisions

    def select(
        self, questions: Sequence[str], candidates: Sequence[Sequence[Triple]]
    ) -> list[FilterDecision]:
        return list(self._decisions)


@pytest.fixture(scope="module")
def index(index_of: IndexOf) -> Index:
    return index_of(FACTS, EMBEDDER)


def assert_dense(rankings: Sequence[Ranking], index: Index, embedder: object, route: str) -> None:
    """The dense retriever's passages and scores, on `route`."""
    questions = [ranking.question for ranking in rankings]
    dense = DenseRetriever(index=index, embedder=embedder).retrieve(questions, top_k=99)  # type: ignore[arg-type]
    assert [ranking.route for ranking in rankings] == [route] * len(rankings)
    for ranking, expected in zip(rankings, dense, strict=True):
        assert ranking.passage_ids == expected.passage_ids
        assert ranking.scores == pytest.approx(expected.scores, abs=1e-6)


def test_graph_route_is_a_walk(index: Index) -> None:
    for ranking in HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(QUESTIONS, top_k=99):
        assert ranking.route == "graph"
        assert all(score >= 0 for score in ranking.scores)
        assert 0 < sum(ranking.scores) < 1


def test_no_facts_in_the_index(index_of: IndexOf) -> None:
    index = index_of(dict.fromkeys(FACTS, ()), EMBEDDER)
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER)
    assert_dense(retriever.retrieve(QUESTIONS, top_k=99), index, EMBEDDER, "dense:no_facts")


def test_only_facts_of_positive_cosine_are_shown(index_of: IndexOf, table_embedder: type) -> None:
    facts = {"p1": [("a", "r", "b")], "p2": [("c", "r", "d")], "p3": [("e", "r", "f")]}
    embedder = table_embedder(
        {
            "a r b": X,
            "c r d": Y,
            "e r f": [-1.0, 0.0, 0.0],
            "like a": X,
            "like none": Z,
            "p1": [0.6, 0.8, 0.0],
        },
        otherwise=Z,
    )
    index = index_of(facts, embedder)
    keep_all = FakeFilter(lambda number, shown: FilterDecision(tuple(range(len(shown)))))
    retriever = HippoRAGRetriever(index=index, embedder=embedder, fact_filter=keep_all)
    like_none, like_a = retriever.retrieve(["like none", "like a"], top_k=99, trace=True)
    assert keep_all.shown == [[Triple("a", "r", "b")]]
    assert_dense([like_none], index, embedder, "dense:no_facts")
    assert like_none.trace is not None
    assert like_none.trace.facts == ()
    assert like_a.route == "graph"
    assert like_a.passages[0].text == "p1"


def test_filter_that_keeps_none(index: Index) -> None:
    none = FakeFilter(lambda number, shown: FilterDecision(()))
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, fact_filter=none)
    assert_dense(retriever.retrieve(QUESTIONS, top_k=99), index, EMBEDDER, "dense:filter_kept_none")


def test_filter_that_could_not_decide(index: Index) -> None:
    broken = FakeFilter(lambda number, shown: FilterDecision((0,), error="no reply"))
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, fact_filter=broken)
    rankings = retriever.retrieve(QUESTIONS, top_k=99, trace=True)
    assert_dense(rankings, index, EMBEDDER, "dense:filter_error")
    for ranking in rankings:
        assert ranking.trace is not None
        assert ranking.trace.facts
        assert not any(fact.kept for fact in ranking.trace.facts)


def test_each_question_of_a_batch_takes_its_own_route(index: Index) -> None:
    decisions = (FilterDecision((0,)), FilterDecision(()), FilterDecision((), error="timed out"))
    mixed = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, fact_filter=FakeFilter(lambda number, shown: decisions[number])
    ).retrieve(QUESTIONS, top_k=99)
    assert [r.route for r in mixed] == ["graph", "dense:filter_kept_none", "dense:filter_error"]
    first = FakeFilter(lambda number, shown: FilterDecision((0,)))
    (alone,) = HippoRAGRetriever(index=index, embedder=EMBEDDER, fact_filter=first).retrieve(
        QUESTIONS[:1], top_k=99
    )
    assert mixed[0].passage_ids == alone.passage_ids
    assert mixed[0].scores == pytest.approx(alone.scores, abs=1e-6)
    assert_dense(mixed[1:2], index, EMBEDDER, "dense:filter_kept_none")


def test_only_kept_facts_seed(index: Index) -> None:
    """The question's best fact is dropped; the one that is kept decides where the walk starts."""
    keep = Triple("tove lund", "works for", "northwind press")
    chosen = FakeFilter(lambda number, shown: FilterDecision((list(shown).index(keep),)))
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, fact_filter=chosen)
    (ranking,) = retriever.retrieve(QUESTIONS[:1], top_k=1, trace=True)
    assert ranking.trace is not None
    assert {s.name for s in ranking.trace.seeds if s.kind == "phrase"} == {"tove lund", "northwind press"}
    assert [fact.triple for fact in ranking.trace.facts if fact.kept] == [keep]
    assert len(ranking.trace.facts) > 1
    assert ranking.passages[0].text == "Tove Lund maps glaciers for Northwind Press."


@pytest.mark.parametrize("count", [0, 2, 4])
def test_filter_with_the_wrong_number_of_decisions(index: Index, count: int) -> None:
    fact_filter = FixedDecisions(*[FilterDecision((0,))] * count)
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, fact_filter=fact_filter)
    with pytest.raises(BackendError, match=f"gave {count} decisions for 3 questions"):
        retriever.retrieve(QUESTIONS, top_k=1)


@pytest.mark.parametrize("kept", [(99,), (-1,), (0, 5)])
def test_filter_that_chooses_what_it_was_not_shown(index: Index, kept: tuple[int, ...]) -> None:
    retriever = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, fact_filter=FixedDecisions(FilterDecision(kept))
    )
    with pytest.raises(BackendError, match=r"among \d facts"):
        retriever.retrieve(QUESTIONS[:1], top_k=1)


@pytest.mark.parametrize(
    "facts",
    [
        {"Ada Vale founded Northwind Press.": [("Ada Vale", "founded", "Northwind Press")]},
        {"Ada Vale.": [("Ada Vale", "founded", "Northwind Press")], "Rye bread.": []},
        {"Ada Vale.": [("Ada Vale", "founded", "Northwind Press"), ("Ada Vale", "founded", "Bergen")]},
        {"Ada Vale.": [("Ada Vale", "founded", "Ada Vale")], "Rye bread.": []},
    ],
    ids=["1 passage", "1 fact", "2 facts", "1 phrase"],
)
def test_tiny_indexes(index_of: IndexOf, facts: dict) -> None:
    index = index_of(facts, EMBEDDER)
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(
        ["Who is Ada Vale, who founded Northwind Press?"], top_k=9, trace=True
    )
    assert ranking.route == "graph"
    assert len(ranking.passages) == len(facts)
    assert ranking.passages[0].text.startswith("Ada Vale")
    assert all(math.isfinite(score) for score in ranking.scores)


def test_retrieval_01_one_passage_without_entities(index_of: IndexOf) -> None:
    index = index_of({"This is just a random chunk.": []}, EMBEDDER)
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(["Which chunk?"], top_k=5)
    assert (ranking.route, len(ranking.passages)) == ("dense:no_facts", 1)
    assert math.isfinite(ranking.scores[0])


@pytest.mark.parametrize("facts", [{"p1": [], "p2": []}, {"p1": [("a", "r", "b")], "p2": [("c", "r", "d")]}])
def test_retrieval_02_identical_embeddings(index_of: IndexOf, table_embedder: type, facts: dict) -> None:
    """Every text has the same vector: no spread to normalise by, and nothing but ties."""
    embedder = table_embedder({}, otherwise=X)
    index = index_of(facts, embedder)
    rankings = HippoRAGRetriever(index=index, embedder=embedder).retrieve(
        ["one?", "two?"], top_k=9, trace=True
    )
    assert rankings[0].route == ("graph" if index.facts else "dense:no_facts")
    for ranking in rankings:
        assert ranking.passage_ids == tuple(sorted(passage.id for passage in index.passages))
        assert ranking.scores[0] == pytest.approx(ranking.scores[1], abs=1e-7)
        assert all(math.isfinite(score) for score in ranking.scores)


def test_retrieval_03_each_question_falls_back_to_its_own_dense_order(
    index_of: IndexOf, table_embedder: type
) -> None:
    passages = {f"p{i}": [("a", "r", "b")] if i == 0 else [] for i in range(6)}
    rows = torch.eye(7).tolist()
    table = {f"p{i}": rows[i] for i in range(6)} | {f"q{i}": rows[i] for i in range(5)}
    embedder = table_embedder(table, otherwise=rows[6])
    index = index_of(passages, embedder)
    rankings = HippoRAGRetriever(index=index, embedder=embedder).retrieve(
        [f"q{i}" for i in range(5)], top_k=6
    )
    assert [ranking.passages[0].text for ranking in rankings] == ["p0", "p1", "p2", "p3", "p4"]
    assert_dense(rankings, index, embedder, "dense:no_facts")


def test_retrieval_05_empty_corpus(index_of: IndexOf) -> None:
    index = index_of({}, EMBEDDER)
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(["x"], top_k=5)
    assert (ranking.passages, ranking.scores, ranking.route) == ((), (), "none:empty_index")


def test_question_in_which_the_embedder_finds_nothing(index: Index) -> None:
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(["?!"], top_k=99)
    assert ranking.route == "dense:no_facts"
    assert ranking.scores == (0.0,) * 4
    assert ranking.passage_ids == tuple(sorted(ranking.passage_ids))


@pytest.mark.parametrize(
    ("instructions", "calls"),
    [
        ({}, 1),
        ({"question_to_fact": "same: ", "question_to_passage": "same: "}, 1),
        ({"passage": "read: "}, 1),
        ({"question_to_fact": "facts: "}, 2),
        ({"question_to_fact": "facts: ", "question_to_passage": "passages: "}, 2),
    ],
)
def test_questions_are_embedded_once_per_instruction(
    index_of: IndexOf, table_embedder: type, instructions: dict, calls: int
) -> None:
    embedder = table_embedder({}, otherwise=X, instructions=instructions)
    index = index_of({"p": [("a", "r", "b")]}, embedder)
    embedder.calls.clear()
    HippoRAGRetriever(index=index, embedder=embedder, batch_size=2).retrieve(QUESTIONS, top_k=1)
    assert [texts for _, texts in embedder.calls] == [QUESTIONS] * calls


@pytest.mark.parametrize("retriever", [HippoRAGRetriever, DenseRetriever])
def test_another_embedder_is_refused(index: Index, retriever: type) -> None:
    with pytest.raises(CompatibilityError, match=r"dim=64.*dim=32.*index the passages again"):
        retriever(index=index, embedder=HashingEmbedder(dim=32))


@pytest.mark.parametrize("retriever", [HippoRAGRetriever, DenseRetriever])
def test_an_index_without_vectors_is_refused(index_of: IndexOf, retriever: type) -> None:
    index = index_of({"p": []}, NoEmbedder())
    with pytest.raises(CompatibilityError, match=r"no vectors \(embedder=none\).*retriever=bm25"):
        retriever(index=index, embedder=NoEmbedder())


def test_question_vectors_are_checked(index_of: IndexOf, table_embedder: type) -> None:
    embedder = table_embedder({"bad?": [math.nan, 0.0, 0.0]}, otherwise=X)
    retriever = HippoRAGRetriever(index=index_of({"p": []}, embedder), embedder=embedder)
    with pytest.raises(BackendError, match=r"NaN or infinity.*'bad\?'"):
        retriever.retrieve(["fine?", "bad?"], top_k=1)


def test_defaults_are_the_published_ones(index: Index) -> None:
    stated = HippoRAGRetriever(
        index=index,
        embedder=EMBEDDER,
        seeding=ReferenceSeeding(linking_top_k=5, passage_weight=0.05),
        fact_filter=KeepAllFacts(),
        ppr=PPROptions(damping=0.5),
    )
    default = HippoRAGRetriever(index=index, embedder=EMBEDDER)
    assert default.retrieve(QUESTIONS, top_k=9) == stated.retrieve(QUESTIONS, top_k=9)


def test_linking_top_k_bounds_the_facts_shown(index: Index) -> None:
    shown = FakeFilter(lambda number, facts: FilterDecision((0,)))
    HippoRAGRetriever(
        index=index, embedder=EMBEDDER, seeding=ReferenceSeeding(linking_top_k=2), fact_filter=shown
    ).retrieve(["Northwind Press in Bergen, Norway"], top_k=1)
    assert [len(facts) for facts in shown.shown] == [2]


def test_cpu_and_cuda_agree(index: Index, device: torch.device) -> None:
    """On the CPU this compares a run with itself: it is there for machines that have a GPU."""
    expected = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(QUESTIONS, top_k=9, trace=True)
    found = HippoRAGRetriever(index=index.to(device), embedder=EMBEDDER).retrieve(
        QUESTIONS, top_k=9, trace=True
    )
    for one, other in zip(expected, found, strict=True):
        assert one.passage_ids == other.passage_ids
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
