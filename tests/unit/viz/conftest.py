"""Explanations to draw, made without an index."""

import pytest
from hypothesis import strategies as st

from hipporag_torch.explanation import (
    ExplainedEdge,
    ExplainedNode,
    ExplainedPassage,
    Explanation,
    passage_node_id,
    phrase_id,
)
from hipporag_torch.types import Passage, Source, SourceShares, TracedFact, Triple

HOSTILE = '"><script>alert(1)</script> & $5 $name ${x} \x00 http'
LABELS = st.text(min_size=1, max_size=80).filter(str.strip) | st.sampled_from(
    ["1991", "american psychological association", "東京都" * 20, "a" * 120, HOSTILE, "القاهرة", "👩‍👩‍👧"]
)
SHARES = st.floats(0, 1)


def made(
    labels: list[str],
    *,
    shares: list[float],
    num_passages: int,
    links: list[tuple[int, int]],
    facts: list[tuple[int, int, bool]],
    dense: bool = False,
    question: str = "Who?",
) -> Explanation:
    """An explanation whose first `num_passages` labels are passages, whose others are phrases."""
    phrases = [] if dense else list(dict.fromkeys(labels[num_passages:]))
    nodes = [
        ExplainedNode(
            phrase_id(p),
            "phrase",
            p,
            shares[i] / 9,
            shares[i] if i % 2 else 0.0,
            sources=(("facts", shares[i] / 4), ("entities", 3 * shares[i] / 4)) if i % 2 else (),
        )
        for i, p in enumerate(phrases)
    ]
    passages = [Passage(f"p{i}", labels[i], (Source(f"s{i}", 0),)) for i in range(num_passages)]
    for i, passage in enumerate(passages):
        mass = 0.0 if dense else shares[i]
        given: SourceShares = (("facts", mass / 4), ("passages", 3 * mass / 4)) if i % 2 and mass else ()
        nodes.append(
            ExplainedNode(passage_node_id(passage.id), "passage", labels[i], mass, 0.0, i + 1, given)
        )
    edges = {
        (a % len(nodes), b % len(nodes))
        for a, b in links
        if a % len(nodes) < b % len(nodes) and a % len(nodes) < len(phrases)
    }
    return Explanation(
        question=question,
        route="dense:no_facts" if dense else "graph",
        why="so",
        facts=tuple(
            TracedFact(
                Triple(labels[a % len(labels)], "is", labels[b % len(labels)]),
                0.5,
                kept and not dense,
                tuple(dict.fromkeys((labels[a % len(labels)], labels[b % len(labels)]))),
            )
            for a, b, kept in facts
        ),
        nodes=tuple(nodes),
        edges=tuple(
            ExplainedEdge(nodes[a].id, nodes[b].id, 1.0, ("fact",), ("is",))
            if b < len(phrases)
            else ExplainedEdge(nodes[a].id, nodes[b].id, 1.0, ("membership",), flow=shares[a] / 9)
            for a, b in sorted(edges)
        ),
        passages=tuple(ExplainedPassage(i + 1, shares[i], p) for i, p in enumerate(passages)),
    )


@st.composite
def explanations(draw: st.DrawFn) -> Explanation:
    labels = draw(st.lists(LABELS, min_size=1, max_size=40))
    number = st.integers(0, 60)
    return made(
        labels,
        shares=draw(st.lists(SHARES, min_size=len(labels), max_size=len(labels))),
        num_passages=draw(st.integers(1, len(labels))),
        links=draw(st.lists(st.tuples(number, number), max_size=60)),
        facts=draw(st.lists(st.tuples(number, number, st.booleans()), max_size=12)),
        dense=draw(st.booleans()),
        question=draw(LABELS),
    )


@pytest.fixture
def hostile() -> Explanation:
    """Every text of it tries to break out of the page, or is a formula to matplotlib."""
    labels = [f"{HOSTILE} {number}" for number in range(8)]
    links = [(0, 3), (1, 4), (2, 6), (0, 7)]
    facts = [(3, 4, True), (4, 5, True)]
    return made(
        labels, shares=[0.1] * 8, num_passages=3, links=links, facts=facts, question=f"{HOSTILE} question"
    )


@pytest.fixture
def many_scripts() -> Explanation:
    labels = ["東京 is a capital", "القاهرة عاصمة مصر", "日本", "مصر", "Ελλάδα", "हिन्दी", "👩‍👩‍👧 family"]
    links = [(0, 5), (1, 6), (0, 1), (2, 3)]
    return made(labels, shares=[0.1] * 7, num_passages=2, links=links, facts=[(2, 3, True)])
