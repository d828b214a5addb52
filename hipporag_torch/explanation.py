"""Why one question got its passages: the sub-graph that carried the mass, as data."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from hipporag_torch.errors import InputError
from hipporag_torch.index import Index
from hipporag_torch.types import (
    Passage,
    Ranking,
    Route,
    SourceShares,
    Trace,
    TracedFact,
    Triple,
    walked,
)

EdgeKind = Literal["fact", "synonym", "membership", "mention"]

_WHY: dict[Route, str] = {
    "graph": "walked from the facts kept over the graph to the passages",
    "graph:no_facts": "there is no fact to start from, so the walk starts from the question's phrases",
    "graph:filter_kept_none": "the fact filter kept none, so the walk starts from the question's phrases",
    "graph:filter_error": "the fact filter failed, so the walk starts from the question's phrases",
    "dense:no_facts": "no fact is like the question, so passages are ranked by their embeddings",
    "dense:filter_kept_none": "the fact filter kept no fact, so passages are ranked by their embeddings",
    "dense:filter_error": "the fact filter failed, so passages are ranked by their embeddings",
    "dense:requested": "dense retrieval was asked for: passages are ranked by their embeddings",
    "dense_bm25:requested": "dense and BM25 scores were asked for: passages are ranked by their sum",
    "bm25:requested": "BM25 was asked for: passages are ranked by the words they share with the question",
    "bm25:no_match": "BM25 was asked for, and no passage shares a word with the question",
    "none:empty_index": "the index is empty",
}
# A softmax leaves hardly anything to the last of many.
_LEAST_SEED = 0.001
# More would make a sentence hard to read.
_MAX_NAMED = 5


@dataclass(frozen=True)
class ExplainedNode:
    """A phrase or a returned passage. All masses are shares of the walk's, which sums to 1.

    mass_share: a passage's mass; of a phrase, what it passed on to the returned passages in the last step.
    seed_share: its share of the reset, if it is among the traced seeds, else 0.
    rank: a passage's place, from 1.
    sources: where a passage's mass started, adding up to it; of a phrase, what gave it its seed share.
    """

    id: str
    kind: Literal["phrase", "passage"]
    label: str
    mass_share: float
    seed_share: float
    rank: int | None = None
    sources: SourceShares = ()


@dataclass(frozen=True)
class ExplainedEdge:
    """An edge of the graph, from a fact's subject to its object or from a phrase to its passage.

    weight: as in the graph. kinds: what makes it one; a mention stands in the passage, which states nothing
    about it. flow: the mass that it carried to a returned passage in the last step.
    predicates: those of the facts that join its ends, whichever way round.
    """

    source: str
    target: str
    weight: float
    kinds: tuple[EdgeKind, ...]
    predicates: tuple[str, ...] = ()
    flow: float = 0.0


@dataclass(frozen=True)
class ExplainedPassage:
    """A returned passage. `through` are the phrases that brought most of its mass, `restart` its own seed's.

    `sources` says where its mass started, adding up to it. All are empty where nothing walked.
    """

    rank: int
    score: float
    passage: Passage
    restart: float = 0.0
    through: tuple[tuple[str, float], ...] = ()
    sources: SourceShares = ()


@dataclass(frozen=True)
class Explanation:
    """One question's sub-graph. `why` says in words which way the question went, and what carried it.

    Nodes are phrases by descending seed and mass, then passages by rank; edges follow that order.
    `facts` are all that were considered, best first; `linked` are the phrases that the question names.
    """

    question: str
    route: Route
    why: str
    facts: tuple[TracedFact, ...]
    nodes: tuple[ExplainedNode, ...]
    edges: tuple[ExplainedEdge, ...]
    passages: tuple[ExplainedPassage, ...]
    linked: tuple[str, ...] = ()


def explain(
    index: Index, ranking: Ranking, *, max_nodes: int = 30, phrases_per_passage: int = 3
) -> Explanation:
    """What carried the mass to the passages of `ranking`, which `index` gave with `trace=True`.

    The returned passages and the phrases with at least a thousandth of the seed are always among the nodes;
    `max_nodes` bounds what comes beside them: the ends of kept facts and, per passage, the
    `phrases_per_passage` phrases that brought most of its mass, the heaviest first.
    """
    for name, value in (("max_nodes", max_nodes), ("phrases_per_passage", phrases_per_passage)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}")
    if ranking.trace is None and walked(ranking.route):
        raise InputError("the ranking has no trace; retrieve it with trace=True")
    trace = ranking.trace or Trace()
    if unknown := [id_ for id_ in ranking.passage_ids if id_ not in index.passage_row]:
        raise InputError(f"the index has no passage {unknown[0]}: the ranking is of another index")
    passages = _passages(ranking, trace, phrases_per_passage)
    phrases = _phrases(trace, passages, max_nodes - len(passages))
    nodes = (*phrases, *_passage_nodes(ranking, trace))
    edges = _edges(index, trace, nodes) if walked(ranking.route) else ()
    return Explanation(
        ranking.question,
        ranking.route,
        _why(ranking, trace),
        trace.facts,
        nodes,
        edges,
        passages,
        trace.linked,
    )


def _why(ranking: Ranking, trace: Trace) -> str:
    """Which way the question went, what stood for its entities, and what failed on the way."""
    parts = [_WHY[ranking.route]]
    if trace.entities_from == "question":
        named = ", ".join(trace.linked[:_MAX_NAMED])
        more = len(trace.linked) - _MAX_NAMED
        parts.append(f"the question names {named}" + (f" and {more} more" if more > 0 else ""))
    elif trace.entities_from == "facts":
        parts.append("no phrase of the question is known, so the facts' phrases stand in")
    return "; ".join(parts) + (f": {ranking.reason}" if ranking.reason else "")


def phrase_id(phrase: str) -> str:
    """The node id of a phrase."""
    return f"phrase:{phrase}"


def passage_node_id(passage_id: str) -> str:
    """The node id of a passage."""
    return f"passage:{passage_id}"


def passage_title(passage: Passage) -> str:
    """Its title if a source gives it one, else its first line."""
    return (passage.title.strip() or passage.text.strip()).splitlines()[0]


def _passages(ranking: Ranking, trace: Trace, limit: int) -> tuple[ExplainedPassage, ...]:
    traced = {passage.passage_id: passage for passage in trace.passages}
    found: list[ExplainedPassage] = []
    for rank, (passage, score) in enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1):
        plain = ExplainedPassage(rank, score, passage)
        its = traced.get(passage.id)
        found.append(
            replace(plain, restart=its.restart, through=its.through[:limit], sources=its.sources)
            if its
            else plain
        )
    return tuple(found)


def _phrases(
    trace: Trace, passages: tuple[ExplainedPassage, ...], max_phrases: int
) -> tuple[ExplainedNode, ...]:
    """The phrases that do seed, and as many others as there is room for."""
    passed_on: dict[str, float] = {}
    for passage in trace.passages:
        for phrase, flow in passage.through:
            passed_on[phrase] = passed_on.get(phrase, 0.0) + flow
    seeds = {seed.name: seed for seed in trace.seeds if seed.kind == "phrase"}
    ends = [end for fact in trace.facts if fact.kept and fact.score >= _LEAST_SEED for end in fact.ends]
    strongest = [phrase for passage in passages for phrase, _ in passage.through]
    shown = [phrase for phrase, seed in seeds.items() if seed.weight >= _LEAST_SEED]
    weak = [phrase for phrase in seeds if phrase in passed_on]
    others = sorted(
        {*ends, *strongest, *weak} - {*shown}, key=lambda phrase: (-passed_on.get(phrase, 0.0), phrase)
    )
    shown += others[: max(0, max_phrases - len(shown))]
    nodes: list[ExplainedNode] = []
    for phrase in shown:
        node = ExplainedNode(phrase_id(phrase), "phrase", phrase, passed_on.get(phrase, 0.0), 0.0)
        seed = seeds.get(phrase)
        nodes.append(replace(node, seed_share=seed.weight, sources=seed.sources) if seed else node)
    return tuple(sorted(nodes, key=lambda node: (-node.seed_share, -node.mass_share, node.label)))


def _passage_nodes(ranking: Ranking, trace: Trace) -> Iterable[ExplainedNode]:
    traced = {passage.passage_id: passage for passage in trace.passages}
    seeds = {seed.name: seed.weight for seed in trace.seeds if seed.kind == "passage"}
    for rank, passage in enumerate(ranking.passages, start=1):
        its = traced.get(passage.id)
        yield ExplainedNode(
            passage_node_id(passage.id),
            "passage",
            passage_title(passage),
            its.mass if its else 0.0,
            seeds.get(passage.id, 0.0),
            rank,
            its.sources if its else (),
        )


def _edges(index: Index, trace: Trace, nodes: tuple[ExplainedNode, ...]) -> tuple[ExplainedEdge, ...]:
    """The edges of the graph among `nodes`, and what joins their ends."""
    rows = _rows(index, nodes)
    shown = dict(zip(rows, nodes, strict=True))
    place = {node.id: number for number, node in enumerate(nodes)}
    facts = _facts_between(index, {node.label for node in nodes if node.kind == "phrase"})
    synonyms = _synonyms_between(index, [r for r in rows if r < index.graph.num_phrases])
    flows = {(p.passage_id, phrase): flow for p in trace.passages for phrase, flow in p.through}
    stating = _memberships(index, [r - index.graph.num_phrases for r in rows if r >= index.graph.num_phrases])
    edges: list[ExplainedEdge] = []
    adjacency = index.graph.adjacency
    for row, node in shown.items():
        entries = slice(int(adjacency.row_ptr[row]), int(adjacency.row_ptr[row + 1]))
        joined = zip(adjacency.col[entries].tolist(), adjacency.weight[entries].tolist(), strict=True)
        for col, weight in joined:
            other = shown.get(col)
            if other is None or place[other.id] < place[node.id]:
                continue
            if other.kind == "passage":
                flow = flows.get((other.id.removeprefix("passage:"), node.label), 0.0)
                states = (col - index.graph.num_phrases, row) in stating
                kind: EdgeKind = "membership" if states else "mention"
                edges.append(ExplainedEdge(node.id, other.id, weight, (kind,), flow=flow))
                continue
            stated = facts.get(frozenset((node.label, other.label)), [])
            kinds: list[EdgeKind] = ["fact"] if stated else []
            if (min(row, col), max(row, col)) in synonyms:
                kinds.append("synonym")
            first, second = (other, node) if stated and stated[0][0] == other.label else (node, other)
            predicates = tuple(dict.fromkeys(predicate for _, predicate in stated))
            edges.append(ExplainedEdge(first.id, second.id, weight, tuple(kinds), predicates))
    edges.sort(key=lambda e: tuple(sorted((place[e.source], place[e.target]))))
    return tuple(edges)


def _rows(index: Index, nodes: Iterable[ExplainedNode]) -> list[int]:
    """The graph's row of each node."""
    phrase_row = {phrase: row for row, phrase in enumerate(index.phrases)}
    rows: list[int] = []
    for node in nodes:
        if node.kind == "passage":
            rows.append(index.graph.num_phrases + index.passage_row[node.id.removeprefix("passage:")])
        elif node.label in phrase_row:
            rows.append(phrase_row[node.label])
        else:
            raise InputError(f"the index has no phrase {node.label!r}: the ranking is of another index")
    return rows


def _facts_between(index: Index, phrases: set[str]) -> dict[frozenset[str], list[tuple[str, str]]]:
    """(subject, predicate) of the facts that join each two of `phrases`, in the index's order."""
    joined: dict[frozenset[str], list[tuple[str, str]]] = {}
    for fact in index.facts:
        # The names of a sentence are not joined to each other.
        if isinstance(fact, Triple) and fact.subject in phrases and fact.object in phrases:
            joined.setdefault(frozenset((fact.subject, fact.object)), []).append(
                (fact.subject, fact.predicate)
            )
    return joined


def _memberships(index: Index, passage_rows: list[int]) -> set[tuple[int, int]]:
    """The (passage, phrase) rows of what these passages state."""
    stated = index.statements
    among = torch.isin(stated.passage_idx, torch.tensor(passage_rows, dtype=torch.int64))
    pairs = [
        zip(stated.passage_idx[among].tolist(), ends[among].tolist(), strict=True)
        for ends in (stated.subject_idx, stated.object_idx)
    ]
    return {pair for both in pairs for pair in both}


def _synonyms_between(index: Index, phrase_rows: list[int]) -> set[tuple[int, int]]:
    wanted = torch.tensor(phrase_rows, dtype=torch.int64, device=index.synonyms.first_idx.device)
    among = torch.isin(index.synonyms.first_idx, wanted) & torch.isin(index.synonyms.second_idx, wanted)
    first, second = index.synonyms.first_idx[among].tolist(), index.synonyms.second_idx[among].tolist()
    return set(zip(first, second, strict=True))
