from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.retrievers.seeding import ConsideredFacts, Evidence, ReferenceSeeding, reset_of

FACTS = {
    "p0": [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "d")],
    "p1": [("b", "r", "e"), ("a", "r", "b")],
    "p2": [("b", "s", "f"), ("e", "r", "g"), ("g", "s", "e")],
    "p3": [("g", "r", "h"), ("h", "r", "i"), ("i", "r", "a")],
    "p4": [],
}


@pytest.fixture(scope="module")
def index(index_of: Callable[..., Index]) -> Index:
    return index_of(FACTS)


def evidence_of(
    fact_idx: torch.Tensor, fact_scores: torch.Tensor, kept: torch.Tensor, passage_scores: torch.Tensor
) -> Evidence:
    facts = ConsideredFacts(fact_idx, fact_scores, torch.ones_like(kept))
    return Evidence(facts, kept, passage_scores, Ragged.of([[]] * len(fact_idx)))


def reset(seeding: ReferenceSeeding, index: Index, evidence: Evidence) -> torch.Tensor:
    sources = seeding.sources(index, evidence)
    assert [source.name for source in sources] == ["facts", "passages"]
    return reset_of(sources, num_nodes=index.graph.num_nodes)


def plain_reset(
    index: Index,
    fact_idx: Sequence[int],
    fact_scores: Sequence[float],
    kept: Sequence[bool],
    passage_scores: Sequence[float],
    *,
    linking_top_k: int,
    passage_weight: float,
) -> np.ndarray:
    """Fact by fact. Divisions in float32, so that ties are the same ties; these go by first mention."""
    scores: dict[str, list[float]] = defaultdict(list)
    for fact, score, is_kept in zip(fact_idx, fact_scores, kept, strict=True):
        if is_kept:
            for phrase in index.facts[fact].parts[::2]:
                scores[phrase].append(score)
    weight = {}
    for phrase, found in scores.items():
        holders = sum(any(phrase in (t[0], t[2]) for t in FACTS[p.text]) for p in index.passages)
        weight[phrase] = np.float32(sum(found)) / np.float32(len(found)) / np.float32(holders)
    reset = np.zeros(index.graph.num_nodes)
    for phrase in sorted(weight, key=lambda p: -weight[p])[:linking_top_k]:
        reset[index.phrases.index(phrase)] = weight[phrase]
    low, high = min(passage_scores), max(passage_scores)
    reset[len(index.phrases) :] = [
        passage_weight * ((s - low) / (high - low) if high > low else 1) for s in passage_scores
    ]
    return reset


@given(data=st.data())
def test_equals_a_plain_reading_of_the_method(index: Index, data: st.DataObject) -> None:
    """Scores are eighths: sums of them are exact, and ties are frequent."""
    num_facts, num_passages = len(index.facts), len(index.passages)
    considered = data.draw(st.integers(1, num_facts))
    questions = data.draw(st.integers(1, 4))
    seeding = ReferenceSeeding(
        linking_top_k=data.draw(st.integers(1, 7)), passage_weight=data.draw(st.sampled_from([0.05, 0.5]))
    )
    eighths = st.integers(0, 8).map(lambda n: n / 8)
    rows = [
        (
            data.draw(st.permutations(range(num_facts)))[:considered],
            sorted(data.draw(st.lists(eighths, min_size=considered, max_size=considered)), reverse=True),
            data.draw(st.lists(st.booleans(), min_size=considered, max_size=considered)),
            data.draw(st.lists(eighths, min_size=num_passages, max_size=num_passages)),
        )
        for _ in range(questions)
    ]
    fact_idx, fact_scores, kept, passage_scores = zip(*rows, strict=True)
    evidence = evidence_of(
        torch.tensor(fact_idx), torch.tensor(fact_scores), torch.tensor(kept), torch.tensor(passage_scores)
    )
    expected = [
        plain_reset(index, *row, linking_top_k=seeding.linking_top_k, passage_weight=seeding.passage_weight)
        for row in rows
    ]
    np.testing.assert_allclose(reset(seeding, index, evidence).numpy(), np.stack(expected), atol=1e-7)


def one_question(index: Index, facts: dict[tuple[str, str, str], float]) -> Evidence:
    rows = {f.parts: i for i, f in enumerate(index.facts)}
    return evidence_of(
        torch.tensor([[rows[fact] for fact in facts]]),
        torch.tensor([list(facts.values())]),
        torch.ones(1, len(facts), dtype=torch.bool),
        torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.5]]),
    )


def test_mean_of_the_facts_over_the_number_of_passages(index: Index) -> None:
    evidence = one_question(index, {("a", "r", "b"): 1.0, ("b", "s", "f"): 0.5})
    weights = reset(ReferenceSeeding(), index, evidence)[0]
    weight = dict(zip(index.phrases, weights.tolist(), strict=False))
    # a is stated by p0, p1 and p3; b by p0, p1 and p2; f by p2 alone.
    assert weight == pytest.approx(
        {"a": 1 / 3, "b": 0.75 / 3, "f": 0.5, "c": 0, "d": 0, "e": 0, "g": 0, "h": 0, "i": 0}
    )


def test_a_tie_at_the_cut_goes_to_the_subject(index: Index) -> None:
    """g and e are in two passages each and have the same score: the subject stays."""
    seeding = ReferenceSeeding(linking_top_k=1)
    for fact, subject in ((("e", "r", "g"), "e"), (("g", "s", "e"), "g")):
        weights = reset(seeding, index, one_question(index, {fact: 0.5}))[0]
        assert [index.phrases[i] for i in weights[: len(index.phrases)].nonzero()[:, 0]] == [subject]


def test_passages_are_minmaxed_and_weigh_little(index: Index) -> None:
    weights = reset(ReferenceSeeding(passage_weight=0.05), index, one_question(index, {("a", "r", "b"): 1.0}))
    assert weights[0, len(index.phrases) :].tolist() == pytest.approx([0, 0.0125, 0.025, 0.0375, 0.05])


def test_batch_equals_loop(index: Index) -> None:
    generator = torch.Generator().manual_seed(7)
    evidence = evidence_of(
        torch.stack([torch.randperm(len(index.facts), generator=generator)[:5] for _ in range(33)]),
        torch.rand(33, 5, generator=generator).sort(dim=1, descending=True).values,
        torch.rand(33, 5, generator=generator) < 0.6,
        torch.rand(33, len(index.passages), generator=generator),
    )
    together = reset(ReferenceSeeding(), index, evidence)
    for row in range(33):
        alone = evidence.select(torch.tensor([row]))
        torch.testing.assert_close(reset(ReferenceSeeding(), index, alone)[0], together[row])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linking_top_k": 0}, r"seeding.linking_top_k must be at least 1, got 0; retriever=dense"),
        ({"linking_top_k": -2}, r"seeding.linking_top_k must be at least 1, got -2"),
        ({"passage_weight": 0.0}, r"seeding.passage_weight must be finite and above 0, got 0"),
        ({"passage_weight": -0.1}, r"seeding.passage_weight must be finite and above 0, got -0.1"),
        ({"passage_weight": float("nan")}, r"seeding.passage_weight must be finite and above 0, got nan"),
    ],
)
def test_options_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReferenceSeeding(**options)
