import math
from collections.abc import Callable, Sequence

import pytest
import torch

from hipporag_torch.chat import Usage
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import BackendError, CompatibilityError
from hipporag_torch.fact_filters import KeepAllFacts
from hipporag_torch.index import Index
from hipporag_torch.linkers import Links, NgramLinker, NoLinker
from hipporag_torch.ops.ppr import PPROptions
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.protocols import Embedder
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import BlendedSeeding, ReferenceSeeding, Seeding
from hipporag_torch.types import Fact, FilterDecision, Ranking, Sentence, Triple, walked

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

    def __init__(self, decide: Callable[[int, Sequence[Fact]], FilterDecision]) -> None:
        self._decide = decide
        self.shown: list[Sequence[Fact]] = []

    def select(self, questions: Sequence[str], candidates: Sequence[Sequence[Fact]]) -> list[FilterDecision]:
        self.shown += candidates
        return [self._decide(number, shown) for number, shown in enumerate(candidates)]


class FixedDecisions:
    def __init__(self, *decisions: FilterDecision) -> None:
        self._decisions = decisions

    def select(self, questions: Sequence[str], candidates: Sequence[Sequence[Fact]]) -> list[FilterDecision]:
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
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, linker=NoLinker(), fact_filter=none)
    assert_dense(retriever.retrieve(QUESTIONS, top_k=99), index, EMBEDDER, "dense:filter_kept_none")


def test_filter_that_could_not_decide(index: Index) -> None:
    broken = FakeFilter(lambda number, shown: FilterDecision((0,), error="no reply"))
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, linker=NoLinker(), fact_filter=broken)
    rankings = retriever.retrieve(QUESTIONS, top_k=99, trace=True)
    assert_dense(rankings, index, EMBEDDER, "dense:filter_error")
    for ranking in rankings:
        assert ranking.trace is not None
        assert ranking.trace.facts
        assert not any(fact.kept for fact in ranking.trace.facts)


def test_each_question_of_a_batch_takes_its_own_route(index: Index) -> None:
    decisions = (FilterDecision((0,)), FilterDecision(()), FilterDecision((), error="timed out"))
    mixed = HippoRAGRetriever(
        index=index,
        embedder=EMBEDDER,
        linker=NoLinker(),
        fact_filter=FakeFilter(lambda number, shown: decisions[number]),
    ).retrieve(QUESTIONS, top_k=99)
    assert [r.route for r in mixed] == ["graph", "dense:filter_kept_none", "dense:filter_error"]
    first = FakeFilter(lambda number, shown: FilterDecision((0,)))
    (alone,) = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, linker=NoLinker(), fact_filter=first
    ).retrieve(QUESTIONS[:1], top_k=99)
    assert mixed[0].passage_ids == alone.passage_ids
    assert mixed[0].scores == pytest.approx(alone.scores, abs=1e-6)
    assert_dense(mixed[1:2], index, EMBEDDER, "dense:filter_kept_none")


def test_only_kept_facts_seed(index: Index) -> None:
    """The question's best fact is dropped; the one that is kept decides where the walk starts."""
    keep = Triple("tove lund", "works for", "northwind press")
    chosen = FakeFilter(lambda number, shown: FilterDecision((list(shown).index(keep),)))
    retriever = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, seeding=ReferenceSeeding(), fact_filter=chosen
    )
    (ranking,) = retriever.retrieve(QUESTIONS[:1], top_k=1, trace=True)
    assert ranking.trace is not None
    assert {s.name for s in ranking.trace.seeds if s.kind == "phrase"} == {"tove lund", "northwind press"}
    assert [fact.fact for fact in ranking.trace.facts if fact.kept] == [keep]
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
    asked = [texts for role, texts in embedder.calls if role.startswith("question")]
    assert asked == [QUESTIONS] * calls


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


def test_defaults(index: Index) -> None:
    stated = HippoRAGRetriever(
        index=index,
        embedder=EMBEDDER,
        seeding=BlendedSeeding(
            num_facts=10,
            bm25_weight=0.2,
            fact_temperature=0.3,
            passage_temperature=0.2,
            share_facts=1.0,
            share_entities=1.0,
            share_passages=1.0,
            fact_pairs=False,
        ),
        linker=NgramLinker(),
        fact_filter=KeepAllFacts(),
        ppr=PPROptions(damping=0.5),
    )
    default = HippoRAGRetriever(index=index, embedder=EMBEDDER)
    assert default.retrieve(QUESTIONS, top_k=9) == stated.retrieve(QUESTIONS, top_k=9)


@pytest.mark.parametrize("seeding", [ReferenceSeeding(linking_top_k=2), BlendedSeeding(num_facts=2)])
def test_the_seeding_bounds_the_facts_shown(index: Index, seeding: Seeding) -> None:
    shown = FakeFilter(lambda number, facts: FilterDecision((0,)))
    HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=seeding, fact_filter=shown).retrieve(
        ["Northwind Press in Bergen, Norway"], top_k=1
    )
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


class FixedLinker:
    """Says that question i names the phrases `named[i]`."""

    def __init__(self, *named: Sequence[str], errors: Sequence[str] | None = None) -> None:
        self._named = named
        self._errors = tuple(errors or [""] * len(named))
        self.asked: list[list[str]] = []

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        self.asked.append(list(questions))
        rows = [sorted(index.phrases.index(name) for name in names) for names in self._named]
        usage = tuple(Usage(calls=1, prompt_tokens=10 + row) for row in range(len(rows)))
        return Links(Ragged.of(rows), self._errors, usage, ({"repeated": 2},) * len(rows))


def test_routes_of_questions_that_name_phrases(index: Index) -> None:
    decisions = (FilterDecision((0,)), FilterDecision(()), FilterDecision((), error="timed out"))
    linker = FixedLinker(["bergen"], ["tove lund"], ["bergen", "norway"])
    rankings = HippoRAGRetriever(
        index=index,
        embedder=EMBEDDER,
        linker=linker,
        fact_filter=FakeFilter(lambda number, shown: decisions[number]),
    ).retrieve(QUESTIONS, top_k=99, trace=True)
    assert [r.route for r in rankings] == ["graph", "graph:filter_kept_none", "graph:filter_error"]
    assert all(walked(r.route) for r in rankings)
    assert linker.asked == [QUESTIONS]
    assert rankings[1].passages[0].text == "Tove Lund maps glaciers for Northwind Press."
    for ranking, linked in zip(rankings, [("bergen",), ("tove lund",), ("bergen", "norway")], strict=True):
        assert ranking.trace
        assert (ranking.trace.linked, ranking.trace.entities_from) == (linked, "question")
    for ranking in rankings[1:]:
        assert ranking.trace
        phrases = [seed for seed in ranking.trace.seeds if seed.kind == "phrase"]
        assert {seed.name for seed in phrases} == set(ranking.trace.linked)
        # Entities have the facts' share as well.
        assert sum(seed.weight for seed in phrases) == pytest.approx(2 / 3, abs=1e-6)
        assert [[name for name, _ in seed.sources] for seed in phrases] == [["entities"]] * len(phrases)


def test_a_question_without_facts_walks_from_what_it_names(index_of: IndexOf, table_embedder: type) -> None:
    embedder = table_embedder({"a r b": X, "c r d": Y, "p1": X, "p2": Y}, otherwise=Z)
    index = index_of({"p1": [("a", "r", "b")], "p2": [("c", "r", "d")]}, embedder)
    (named,) = HippoRAGRetriever(index=index, embedder=embedder, linker=FixedLinker(["c"])).retrieve(
        ["like none"], top_k=9
    )
    assert (named.route, named.passages[0].text) == ("graph:no_facts", "p2")
    other = HippoRAGRetriever(index=index, embedder=embedder, linker=FixedLinker([]))
    assert_dense(other.retrieve(["like none"], top_k=9), index, embedder, "dense:no_facts")


def test_what_the_linker_says_is_told_beside_the_filter(index: Index) -> None:
    said = FilterDecision((), "timed out", {"repeated": 1, "odd": 1}, Usage(calls=2))
    linker = FixedLinker([], ["bergen"], [], errors=["no reply", "", ""])
    fact_filter = FakeFilter(lambda number, shown: said if number < 2 else FilterDecision((0,)))
    rankings = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, linker=linker, fact_filter=fact_filter
    ).retrieve(QUESTIONS, top_k=1)
    assert [r.route for r in rankings] == ["dense:filter_error", "graph:filter_error", "graph"]
    assert [r.reason for r in rankings] == ["timed out; linker: no reply", "timed out", ""]
    assert [r.usage for r in rankings] == [Usage(3, 10), Usage(3, 11), Usage(1, 12)]
    assert [r.dropped for r in rankings] == [{"odd": 1, "repeated": 3}] * 2 + [{"repeated": 2}]


def test_reference_seeding_asks_no_linker(index: Index) -> None:
    linker = FixedLinker(["bergen"])
    (ranking,) = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, seeding=ReferenceSeeding(), linker=linker
    ).retrieve(QUESTIONS[:1], top_k=1, trace=True)
    assert linker.asked == []
    assert ranking.trace
    assert (ranking.trace.linked, ranking.trace.entities_from) == ((), "")


def test_a_linker_with_the_wrong_number_of_rows(index: Index) -> None:
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, linker=FixedLinker(["bergen"], []))
    with pytest.raises(BackendError, match="the linker gave 2 rows for 3 questions"):
        retriever.retrieve(QUESTIONS, top_k=1)


def test_an_index_without_phrases_asks_no_linker(index_of: IndexOf) -> None:
    linker = FixedLinker([])
    index = index_of({"p": []}, EMBEDDER)
    HippoRAGRetriever(index=index, embedder=EMBEDDER, linker=linker).retrieve(["p?"], top_k=1)
    assert linker.asked == []


SENTENCES = {
    "Ada.": {"Ada Vale founded Northwind Press in Bergen.": ["Ada Vale", "Northwind Press", "Bergen"]},
    "Tove.": {"Tove Lund maps glaciers.": ["Tove Lund"], "It is cold.": []},
    "Rye.": {"Rye bread is baked aboard.": []},
}


@pytest.mark.parametrize("seeding", [BlendedSeeding(num_facts=1), ReferenceSeeding(linking_top_k=1)])
@pytest.mark.parametrize(
    ("question", "ends"),
    [
        ("Who founded Northwind Press in Bergen?", {"ada vale", "northwind press", "bergen"}),
        ("Who maps glaciers?", {"tove lund"}),
    ],
)
def test_sentences_seed_what_they_name(
    sentence_index_of: IndexOf, seeding: Seeding, question: str, ends: set[str]
) -> None:
    index = sentence_index_of(SENTENCES, EMBEDDER)
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=seeding, linker=NoLinker())
    (ranking,) = retriever.retrieve([question], top_k=3, trace=True)
    assert ranking.route == "graph"
    assert ranking.trace
    (fact,) = ranking.trace.facts
    assert isinstance(fact.fact, Sentence)
    assert set(fact.ends) == ends
    assert fact.kept
    seeds = {seed.name for seed in ranking.trace.seeds if seed.kind == "phrase"}
    assert seeds <= ends
    assert len(seeds) == (1 if isinstance(seeding, ReferenceSeeding) else len(ends))


def test_sentences_of_many_lengths_in_one_batch(sentence_index_of: IndexOf) -> None:
    index = sentence_index_of(SENTENCES, EMBEDDER)
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER)
    questions = ["Who founded Northwind Press in Bergen?", "Who maps glaciers?", "What is baked aboard?"]
    for ranking, question in zip(retriever.retrieve(questions, top_k=3), questions, strict=True):
        (alone,) = retriever.retrieve([question], top_k=3)
        assert (ranking.passage_ids, ranking.route) == (alone.passage_ids, alone.route)
        assert ranking.scores == pytest.approx(alone.scores, abs=1e-6)


@pytest.mark.parametrize(
    "seeding",
    [
        BlendedSeeding(),
        BlendedSeeding(fact_pairs=True),
        BlendedSeeding(start_exponent=1.0),
        ReferenceSeeding(),
    ],
)
def test_a_batch_equals_one_by_one(index: Index, seeding: Seeding) -> None:
    questions = [
        *QUESTIONS,
        "Rye bread is baked aboard.",
        "Northwind Press",
        "?!",
        "Bergen, Norway and Tove Lund",
    ]
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=seeding)
    for ranking, question in zip(retriever.retrieve(questions, top_k=9), questions, strict=True):
        (alone,) = retriever.retrieve([question], top_k=9)
        assert (ranking.passage_ids, ranking.route) == (alone.passage_ids, alone.route)
        assert ranking.scores == pytest.approx(alone.scores, abs=1e-6)


def test_a_start_exponent_below_1_ranks_by_the_power_mean_of_the_sources_masses(index: Index) -> None:
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=BlendedSeeding(start_exponent=0.5))
    for ranking in retriever.retrieve(QUESTIONS, top_k=3, trace=True):
        assert ranking.trace is not None
        for passage, score in zip(ranking.trace.passages, ranking.scores, strict=True):
            assert sum(share for _, share in passage.sources) == pytest.approx(passage.mass, abs=1e-6)
            assert score == pytest.approx(sum(s**0.5 for _, s in passage.sources) ** 2 / 3, abs=1e-5)


def test_the_order_of_the_passages_is_irrelevant(index_of: IndexOf) -> None:
    expected = HippoRAGRetriever(index=index_of(FACTS, EMBEDDER), embedder=EMBEDDER).retrieve(
        QUESTIONS, top_k=9
    )
    turned = dict(reversed(FACTS.items()))
    found = HippoRAGRetriever(index=index_of(turned, EMBEDDER), embedder=EMBEDDER).retrieve(
        QUESTIONS, top_k=9
    )
    assert [(r.passage_ids, r.scores) for r in found] == [(r.passage_ids, r.scores) for r in expected]


def test_a_question_equal_to_a_passage_finds_it(index: Index) -> None:
    for text in FACTS:
        (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve([text], top_k=1)
        assert ranking.passages[0].text == text
