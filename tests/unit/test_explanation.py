"""The sub-graph of one question, on an index whose edges are known by hand."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import get_args

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import InputError
from hipporag_torch.explanation import (
    Explanation,
    explain,
    passage_node_id,
    passage_title,
    phrase_id,
)
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import (
    Document,
    Extraction,
    Passage,
    Ranking,
    Route,
    Sentence,
    Source,
    Trace,
    TracedFact,
    TracedPassage,
    TracedSeed,
    Triple,
)

STATED = {
    "Ada Vale founded and led Northwind Press.": [
        ("Northwind Press", "was led by", "Ada Vale"),
        ("Northwind Press", "founded by", "Ada Vale"),
    ],
    "Northwind Press stands in Bergen.": [("Northwind Press", "stands in", "Bergen")],
    "The Northwind Presses are listed.": [("Northwind Presses", "are", "listed")],
    "Rye bread is baked aboard.": [],
}
ADA, BERGEN, LISTED, BREAD = STATED
SAILS = "The ferry sails to Bergen."
ENDS = ("northwind press", "ada vale")
FOUNDED = Triple("northwind press", "founded by", "ada vale")
STANDS = Triple("northwind press", "stands in", "bergen")


class Stated:
    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [
            Extraction(triples=tuple(Triple(*triple) for triple in STATED.get(passage.text, [])))
            for passage in passages
        ]


class Sentences:
    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        names = ("Northwind Press", "Ada Vale")
        return [Extraction(sentences=((Sentence(passage.text), names),)) for passage in passages]


def memory(
    graph: GraphOptions | None = None, stated: Mapping[str, Sequence[tuple[str, str, str]]] = STATED
) -> HippoRAG:
    embedder = HashingEmbedder(dim=256)
    made = HippoRAG(
        indexer=Indexer(
            embedder=embedder,
            extractor=Stated(),
            graph=graph or GraphOptions(synonym_threshold=0.6),
        ),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
    )
    made.add([Document(text, source_id=f"source {i}") for i, text in enumerate(stated)])
    return made


@pytest.fixture(scope="module")
def index() -> Index:
    return memory().index


def passage(index: Index, text: str) -> Passage:
    return next(found for found in index.passages if found.text == text)


@pytest.fixture
def ranking(index: Index) -> Ranking:
    """As if the walk had started at two phrases and the first passage."""
    ada, bergen = passage(index, ADA), passage(index, BERGEN)
    trace = Trace(
        facts=(TracedFact(FOUNDED, 1.0, True, ENDS), TracedFact(STANDS, 0.5, False, (ENDS[0], "bergen"))),
        seeds=(
            TracedSeed("phrase", "ada vale", 0.5, (("facts", 0.375), ("entities", 0.125))),
            TracedSeed("phrase", "northwind presses", 0.25, (("entities", 0.25),)),
            TracedSeed("passage", ada.id, 0.1, (("passages", 0.1),)),
        ),
        passages=(
            TracedPassage(
                ada.id,
                0.5,
                0.125,
                (("ada vale", 0.25), ("northwind press", 0.125)),
                (("facts", 0.25), ("entities", 0.125), ("passages", 0.125)),
            ),
            TracedPassage(
                bergen.id, 0.25, 0.0, (("bergen", 0.1875), ("northwind press", 0.0625)), (("facts", 0.25),)
            ),
        ),
    )
    return Ranking("Who founded it?", (ada, bergen), (0.5, 0.25), "graph", trace)


def named(
    explanation: Explanation,
) -> dict[tuple[str, str], tuple[float, tuple[str, ...], tuple[str, ...], float]]:
    """Edges by the labels of their ends."""
    label = {node.id: node.label for node in explanation.nodes}
    return {
        (label[e.source], label[e.target]): (round(e.weight, 3), e.kinds, e.predicates, e.flow)
        for e in explanation.edges
    }


def test_nodes(index: Index, ranking: Ranking) -> None:
    explanation = explain(index, ranking)
    assert [(n.kind, n.label, n.mass_share, n.seed_share, n.rank) for n in explanation.nodes] == [
        ("phrase", "ada vale", 0.25, 0.5, None),
        ("phrase", "northwind presses", 0.0, 0.25, None),
        ("phrase", "bergen", 0.1875, 0.0, None),
        ("phrase", "northwind press", 0.1875, 0.0, None),
        ("passage", ADA, 0.5, 0.1, 1),
        ("passage", BERGEN, 0.25, 0.0, 2),
    ]
    assert explanation.nodes[0].id == phrase_id("ada vale")
    assert explanation.nodes[4].id == passage_node_id(passage(index, ADA).id)
    assert explanation.facts == (ranking.trace.facts if ranking.trace else ())
    assert [(p.rank, p.score, p.restart, p.through[:1]) for p in explanation.passages] == [
        (1, 0.5, 0.125, (("ada vale", 0.25),)),
        (2, 0.25, 0.0, (("bergen", 0.1875),)),
    ]


def test_sources_of_seeds_and_of_passages(index: Index, ranking: Ranking) -> None:
    explanation = explain(index, ranking)
    assert {node.label: node.sources for node in explanation.nodes} == {
        "ada vale": (("facts", 0.375), ("entities", 0.125)),
        "northwind presses": (("entities", 0.25),),
        "bergen": (),
        "northwind press": (),
        ADA: (("facts", 0.25), ("entities", 0.125), ("passages", 0.125)),
        BERGEN: (("facts", 0.25),),
    }
    assert [passage.sources for passage in explanation.passages] == [
        node.sources for node in explanation.nodes[-2:]
    ]


@pytest.mark.parametrize(
    ("route", "linked", "entities_from", "words"),
    [
        (
            "graph",
            ("oslo", "norway"),
            "question",
            "walked from the facts kept.*; the question names oslo, norway$",
        ),
        ("graph", (), "facts", "no phrase of the question is known, so the facts' phrases stand in$"),
        ("graph", (), "", "walked from the facts kept over the graph to the passages$"),
        (
            "graph:no_facts",
            ("oslo",),
            "question",
            "there is no fact to start from, so.*; the question names oslo$",
        ),
        (
            "graph:filter_kept_none",
            ("oslo",),
            "question",
            "the fact filter kept none, so the walk.*names oslo$",
        ),
        ("graph", tuple("abcdefg"), "question", "names a, b, c, d, e and 2 more$"),
    ],
)
def test_why_says_what_carried_the_question(
    index: Index, ranking: Ranking, route: str, linked: tuple[str, ...], entities_from: str, words: str
) -> None:
    assert ranking.trace
    trace = replace(ranking.trace, linked=linked, entities_from=entities_from)  # type: ignore[arg-type]
    explanation = explain(index, replace(ranking, route=route, trace=trace))
    assert re.search(words, explanation.why)
    assert explanation.linked == linked
    assert explanation.edges


def test_every_route_is_told_in_words(index: Index, ranking: Ranking) -> None:
    for route in get_args(Route):
        assert explain(index, replace(ranking, route=route)).why


def test_a_failed_filter_is_told_where_the_question_walks_too(index: Index, ranking: Ranking) -> None:
    failed = explain(index, replace(ranking, route="graph:filter_error", reason="the model is gone"))
    assert failed.why == (
        "the fact filter failed, so the walk starts from the question's phrases: the model is gone"
    )


def test_edges_are_those_of_the_graph_with_their_kinds(index: Index, ranking: Ranking) -> None:
    cosine = round(float(index.synonyms.cosine[0]), 3)
    assert len(index.synonyms) == 1
    assert named(explain(index, ranking)) == {
        ("northwind press", "ada vale"): (4.0, ("fact",), ("founded by", "was led by"), 0.0),
        ("ada vale", ADA): (1.0, ("membership",), (), 0.25),
        ("northwind presses", "northwind press"): (cosine, ("synonym",), (), 0.0),
        ("northwind press", "bergen"): (2.0, ("fact",), ("stands in",), 0.0),
        ("bergen", BERGEN): (1.0, ("membership",), (), 0.1875),
        ("northwind press", ADA): (1.0, ("membership",), (), 0.125),
        ("northwind press", BERGEN): (1.0, ("membership",), (), 0.0625),
    }


def test_a_phrase_that_a_passage_names_and_does_not_state_is_a_mention() -> None:
    mentioning = memory(GraphOptions(synonym_threshold=1.1, mention_weight=0.25), {**STATED, SAILS: []})
    ranking = mentioning.retrieve([SAILS], top_k=1, trace=True)[0]
    explanation = explain(mentioning.index, ranking)
    assert ("bergen", SAILS) in (found := named(explanation))
    assert found["bergen", SAILS][:2] == (0.25, ("mention",))


def test_sentences_stand_for_facts() -> None:
    embedder = HashingEmbedder(dim=256)
    made = HippoRAG(
        indexer=Indexer(embedder=embedder, extractor=Sentences(), graph=GraphOptions(synonym_threshold=1.1)),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
    )
    made.add([Document(ADA)])
    ranking = made.retrieve(["Who led Northwind Press?"], top_k=1, trace=True)[0]
    explanation = explain(made.index, ranking)
    assert [(fact.fact.parts, fact.ends) for fact in explanation.facts] == [
        ((ADA,), ("ada vale", "northwind press"))
    ]
    assert {node.label for node in explanation.nodes} == {"ada vale", "northwind press", ADA}
    assert {edge.kinds for edge in explanation.edges} == {("membership",)}


def test_phrases_on_the_way_are_bounded_passages_and_seeds_are_not(index: Index, ranking: Ranking) -> None:
    def labels(**options: int) -> list[str]:
        return [node.label for node in explain(index, ranking, **options).nodes]

    assert labels(max_nodes=1) == ["ada vale", "northwind presses", ADA, BERGEN]
    assert labels(max_nodes=5) == ["ada vale", "northwind presses", "bergen", ADA, BERGEN]
    assert "northwind press" in labels(phrases_per_passage=1)  # an end of the fact that was kept
    assert [len(p.through) for p in explain(index, ranking, phrases_per_passage=1).passages] == [1, 1]


def test_phrases_that_hardly_seed_are_shown_where_they_passed_mass_on_and_find_room(
    index: Index, ranking: Ranking
) -> None:
    assert ranking.trace
    ada, presses, passage_seed = ranking.trace.seeds
    idle = replace(presses, weight=0.0009, sources=(("facts", 0.0009),))
    passing = replace(idle, name="northwind press")
    weak = replace(ranking, trace=replace(ranking.trace, seeds=(ada, idle, passing, passage_seed)))
    labels = [node.label for node in explain(index, weak, max_nodes=3).nodes]
    assert labels == ["ada vale", ADA, BERGEN]
    shown = {node.label: node for node in explain(index, weak).nodes}
    assert "northwind presses" not in shown
    node = shown["northwind press"]
    assert (node.seed_share, node.sources) == (0.0009, (("facts", 0.0009),))


def test_edges_of_a_smaller_picture_are_among_its_nodes(index: Index, ranking: Ranking) -> None:
    small = explain(index, ranking, max_nodes=1)
    assert set(named(small)) == {("ada vale", ADA)}


def test_of_a_real_walk() -> None:
    filled = memory()
    ranking = filled.retrieve(["Who founded Northwind Press?"], top_k=3, trace=True)[0]
    explanation = explain(filled.index, ranking)
    assert explanation.route == "graph"
    assert explanation == explain(filled.index, ranking)
    assert ranking.trace
    passages = [node for node in explanation.nodes if node.kind == "passage"]
    assert [node.mass_share for node in passages] == [found.mass for found in ranking.trace.passages]
    ids = [node.id for node in explanation.nodes]
    assert len(set(ids)) == len(ids) <= 30
    assert all({edge.source, edge.target} <= set(ids) and edge.kinds for edge in explanation.edges)
    for traced in ranking.trace.passages:
        flows = [e.flow for e in explanation.edges if e.target == passage_node_id(traced.passage_id)]
        assert traced.mass == pytest.approx(traced.restart + sum(flows), rel=1e-4)
    assert json.loads(json.dumps(asdict(explanation)))["nodes"][0]["id"] == ids[0]


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ("dense:no_facts", "no fact is like the question"),
        ("dense:filter_kept_none", "kept no fact"),
        ("bm25:requested", "BM25"),
        ("dense_bm25:requested", "dense and BM25"),
    ],
)
def test_other_routes_show_facts_and_passages(index: Index, ranking: Ranking, route: str, words: str) -> None:
    facts = (TracedFact(STANDS, 0.5, False, ENDS),)
    dense = replace(ranking, route=route, trace=Trace(facts=facts))
    explanation = explain(index, dense)
    assert words in explanation.why
    assert explanation.facts == facts
    assert [(n.kind, n.mass_share, n.rank) for n in explanation.nodes] == [
        ("passage", 0, 1),
        ("passage", 0, 2),
    ]
    assert explanation.edges == ()
    assert [(p.score, p.through) for p in explanation.passages] == [(0.5, ()), (0.25, ())]


def test_filter_error_is_told(index: Index, ranking: Ranking) -> None:
    failed = replace(ranking, route="dense:filter_error", trace=Trace(), reason="the model is gone")
    assert explain(index, failed).why.endswith(": the model is gone")


def test_without_a_trace(index: Index, ranking: Ranking) -> None:
    with pytest.raises(InputError, match="trace=True"):
        explain(index, replace(ranking, trace=None))
    assert explain(index, replace(ranking, trace=None, route="dense:requested")).facts == ()


def test_empty_index(index: Index) -> None:
    nothing = explain(index, Ranking("Who?", (), (), "none:empty_index"))
    assert (nothing.nodes, nothing.edges, nothing.passages) == ((), (), ())


def test_ranking_of_another_index(index: Index, ranking: Ranking) -> None:
    with pytest.raises(InputError, match="the index has no passage other"):
        explain(index, replace(ranking, passages=(Passage("other", "x"), ranking.passages[1])))
    assert ranking.trace
    seeds = (TracedSeed("phrase", "nobody", 1.0, (("facts", 1.0),)),)
    with pytest.raises(InputError, match="the index has no phrase 'nobody'"):
        explain(index, replace(ranking, trace=replace(ranking.trace, seeds=seeds)))


@pytest.mark.parametrize("name", ["max_nodes", "phrases_per_passage"])
def test_bounds_out_of_range(index: Index, ranking: Ranking, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1, got 0"):
        explain(index, ranking, **{name: 0})


def test_title_of_a_passage() -> None:
    assert passage_title(Passage("p", "Oslo\nOslo is a city.")) == "Oslo"
    titled = (Source("a", 0, {"title": 7}), Source("b", 0, {"title": "Norway"}))
    assert passage_title(Passage("p", "Oslo is a city.", titled)) == "Norway"
