from collections.abc import Callable

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.index import Index
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import BlendedSeeding, ReferenceSeeding
from hipporag_torch.types import FilterDecision, Ranking, Trace, Triple

EMBEDDER = HashingEmbedder(dim=64)
FACTS = {
    "Ada Vale founded Northwind Press in Bergen.": [
        ("Ada Vale", "founded", "Northwind Press"),
        ("Northwind Press", "founded in", "Bergen"),
    ],
    "Bergen lies in Norway.": [("Bergen", "lies in", "Norway")],
    "Rye bread is baked aboard.": [],
    # Far more phrases than a trace would list.
    "The ferry calls at many ports.": [("ferry", "calls at", f"port {name}") for name in "abcdefghijklmnop"],
}


class KeepFirst:
    def select(self, questions, candidates):  # type: ignore[no-untyped-def]
        return [FilterDecision((0,)) for _ in questions]


@pytest.fixture(scope="module")
def index(index_of: Callable[..., Index]) -> Index:
    return index_of(FACTS, EMBEDDER)


@pytest.fixture(
    scope="module",
    params=[BlendedSeeding(num_facts=5, start_exponent=1.0), ReferenceSeeding()],
    ids=["blended", "reference"],
)
def rankings(index: Index, request: pytest.FixtureRequest) -> list[Ranking]:
    retriever = HippoRAGRetriever(
        index=index, embedder=EMBEDDER, seeding=request.param, fact_filter=KeepFirst()
    )
    return retriever.retrieve(["Who founded Northwind Press?", "ferry calls at port"], top_k=99, trace=True)


def traced(ranking: Ranking) -> Trace:
    assert ranking.trace is not None
    return ranking.trace


@pytest.mark.parametrize("number", [0, 1])
def test_a_passages_mass_is_restart_plus_what_came_through_phrases(
    rankings: list[Ranking], number: int
) -> None:
    ranking = rankings[number]
    assert tuple(passage.passage_id for passage in traced(ranking).passages) == ranking.passage_ids
    for passage, score in zip(traced(ranking).passages, ranking.scores, strict=True):
        flows = [flow for _, flow in passage.through]
        assert passage.mass == pytest.approx(score, abs=1e-7)
        assert passage.restart >= 0
        assert flows == sorted(flows, reverse=True)
        assert passage.mass == pytest.approx(passage.restart + sum(flows), abs=1e-6)


def test_through_names_the_passages_own_phrases(rankings: list[Ranking]) -> None:
    through = {
        passage.text: {phrase for phrase, _ in entry.through}
        for passage, entry in zip(rankings[0].passages, traced(rankings[0]).passages, strict=True)
    }
    assert through["Ada Vale founded Northwind Press in Bergen."] == {"ada vale", "northwind press", "bergen"}
    assert through["Bergen lies in Norway."] == {"bergen", "norway"}
    assert through["Rye bread is baked aboard."] == set()


def test_seeds_are_shares(rankings: list[Ranking]) -> None:
    for ranking in rankings:
        seeds = traced(ranking).seeds
        assert sum(seed.weight for seed in seeds) == pytest.approx(1, abs=1e-6)  # 4 passages: all are listed
        for kind in ("phrase", "passage"):
            weights = [seed.weight for seed in seeds if seed.kind == kind]
            assert weights == sorted(weights, reverse=True)
            assert all(weight > 0 for weight in weights)
        assert {seed.name for seed in seeds if seed.kind == "passage"} <= set(ranking.passage_ids)


def test_many_passages_seed_but_only_the_strongest_are_listed(index_of: Callable[..., Index]) -> None:
    facts = {
        f"Northwind Press prints atlas {n}.": [("Northwind Press", "prints", f"atlas {n}")] for n in range(40)
    }
    retriever = HippoRAGRetriever(index=index_of(facts, EMBEDDER), embedder=EMBEDDER)
    (ranking,) = retriever.retrieve(["What does Northwind Press print?"], top_k=3, trace=True)
    seeds = traced(ranking).seeds
    assert sum(seed.kind == "passage" for seed in seeds) == 10
    assert 0 < sum(seed.weight for seed in seeds) < 1
    assert len(traced(ranking).passages) == 3


def test_facts_say_which_were_kept(rankings: list[Ranking]) -> None:
    for ranking in rankings:
        facts = traced(ranking).facts
        assert len(facts) == 5
        assert [fact.kept for fact in facts] == [True, False, False, False, False]
        scores = [fact.score for fact in facts]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] <= 1
        assert scores[-1] > 0
    assert rankings[0].trace is not None
    best = rankings[0].trace.facts[0].fact
    assert isinstance(best, Triple)
    assert best.object in {"northwind press", "bergen"}


def test_sources_add_up_in_seeds_and_in_passages(rankings: list[Ranking]) -> None:
    for ranking in rankings:
        for seed in traced(ranking).seeds:
            assert sum(weight for _, weight in seed.sources) == pytest.approx(seed.weight, abs=1e-6)
            assert ("passages" in dict(seed.sources)) == (seed.kind == "passage")
        for passage in traced(ranking).passages:
            assert sum(mass for _, mass in passage.sources) == pytest.approx(passage.mass, abs=1e-6)
            assert all(mass > 0 for _, mass in passage.sources)


def test_seeds_of_each_source_add_up_to_its_share(index: Index) -> None:
    seeding = BlendedSeeding(share_facts=5.0, share_entities=3.0, share_passages=2.0)
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=seeding)
    named, unnamed = retriever.retrieve(
        ["Who founded Northwind Press?", "what is it called?"], top_k=9, trace=True
    )
    assert (traced(named).linked, traced(named).entities_from) == (("northwind press",), "question")
    assert (traced(unnamed).linked, traced(unnamed).entities_from) == ((), "facts")
    for ranking, shares in (
        (named, {"facts": 0.5, "entities": 0.3, "passages": 0.2}),
        (unnamed, {"facts": 0.8, "passages": 0.2}),
    ):
        given: dict[str, float] = {}
        for seed in traced(ranking).seeds:
            for name, weight in seed.sources:
                given[name] = given.get(name, 0.0) + weight
        assert given == pytest.approx(shares, abs=1e-6)
    (shared,) = [seed for seed in traced(named).seeds if seed.name == "northwind press"]
    assert [name for name, _ in shared.sources] == ["facts", "entities"]


def test_blended_scores_are_softmax_weights_of_the_facts_considered(index: Index) -> None:
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(
        ["Who founded Northwind Press?"], top_k=1, trace=True
    )
    assert sum(fact.score for fact in traced(ranking).facts) == pytest.approx(1, abs=1e-6)
    assert all(
        fact.ends == tuple(dict.fromkeys((fact.fact.parts[0], fact.fact.parts[2])))
        for fact in traced(ranking).facts
    )
