import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.ops.scores import standardised
from hipporag_torch.retrievers.seeding import (
    BlendedSeeding,
    ConsideredFacts,
    Evidence,
    SeedSource,
    reset_of,
)
from hipporag_torch.retrievers.seeding.equal_ends import summed_over_phrases

IndexOf = Callable[..., Index]
FACTS = {
    "p0": [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "d")],
    "p1": [("b", "r", "e"), ("a", "r", "b")],
    "p2": [("b", "s", "f"), ("e", "r", "g"), ("g", "s", "g")],
    "p3": [("g", "r", "h"), ("h", "r", "i"), ("i", "r", "a")],
    "p4": [],
}
EVEN = BlendedSeeding(fact_temperature=1.0, passage_temperature=1.0)


@pytest.fixture(scope="module")
def index(index_of: IndexOf) -> Index:
    return index_of(FACTS)


def evidence_of(
    index: Index,
    facts: dict[tuple[str, str, str], float],
    *,
    dropped: Sequence[int] = (),
    named: Sequence[str] = (),
    cosines: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5),
) -> Evidence:
    """One question's; `dropped` are places in `facts`."""
    rows = {fact.parts: row for row, fact in enumerate(index.facts)}
    scores = torch.tensor([list(facts.values())])
    kept = torch.tensor([[place not in dropped for place in range(len(facts))]])
    idx = torch.tensor([[rows[fact] for fact in facts]], dtype=torch.int64)
    links = Ragged.of([sorted(index.phrases.index(name) for name in named)])
    return Evidence(
        ConsideredFacts(idx, scores, torch.ones_like(kept)), kept, torch.tensor([list(cosines)]), links
    )


def weights(index: Index, source: SeedSource) -> dict[str, float]:
    """What a source gives the nodes of question 0; zeros left out."""
    names = [*index.phrases, *(passage.text for passage in index.passages)]
    row = reset_of([source], num_nodes=index.graph.num_nodes)[0]
    return {names[i]: float(row[i]) for i in row.nonzero()[:, 0]}


def share(source: SeedSource) -> float:
    return float(source.weight.sum())


def test_facts_weigh_by_softmax_over_those_kept_and_by_the_rarity_of_their_phrases(index: Index) -> None:
    three_to_one = {("a", "r", "b"): math.log(3), ("g", "r", "h"): 9.0, ("b", "s", "f"): 0.0}
    facts, _, _ = EVEN.sources(index, evidence_of(index, three_to_one, dropped=[1], named=["i"]))
    # a and b stand in 3 passages each, f in one.
    plain = {"a": 0.75 / 3, "b": 0.75 / 3 + 0.25 / 3, "f": 0.25}
    total = sum(plain.values())
    assert weights(index, facts) == pytest.approx({name: w / total / 3 for name, w in plain.items()})


def test_a_fact_about_itself_gives_both_its_ends(index: Index) -> None:
    facts, _, _ = EVEN.sources(index, evidence_of(index, {("g", "s", "g"): 0.0, ("h", "r", "i"): 0.0}))
    # g, in 2 passages, is both ends of one fact; h and i, in one, are an end each of the other.
    assert weights(index, facts) == pytest.approx({"g": 2 / 9, "h": 2 / 9, "i": 2 / 9})


def test_entities_weigh_by_rarity(index: Index) -> None:
    _, entities, _ = EVEN.sources(index, evidence_of(index, {("h", "r", "i"): 0.0}, named=["a", "f"]))
    assert weights(index, entities) == pytest.approx({"a": 1 / 4 / 3, "f": 3 / 4 / 3})


def test_passages_weigh_by_softmax_of_standardised_cosines(index: Index) -> None:
    cosines = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    seeding = BlendedSeeding(passage_temperature=0.5)
    *_, passages = seeding.sources(
        index, evidence_of(index, {("a", "r", "b"): 0.0}, cosines=cosines.tolist())
    )
    plain = np.exp((cosines - cosines.mean()) / cosines.std(ddof=1) / 0.5)
    expected = plain / plain.sum() / 3
    assert weights(index, passages) == pytest.approx(
        dict(zip((passage.text for passage in index.passages), expected, strict=True))
    )


def test_passages_all_alike_weigh_alike(index: Index) -> None:
    *_, passages = EVEN.sources(index, evidence_of(index, {("a", "r", "b"): 0.0}, cosines=[0.3] * 5))
    assert passages.weight.tolist() == [pytest.approx([1 / 15] * 5)]


@pytest.mark.parametrize(
    ("dropped", "named", "shares"),
    [
        ([], ["c"], [0.5, 0.3, 0.2]),
        ([], [], [0.8, 0.0, 0.2]),
        ([0], ["c"], [0.0, 0.8, 0.2]),
    ],
)
def test_where_there_is_nothing_to_one_source_the_other_gets_its_share(
    index: Index, dropped: list[int], named: list[str], shares: list[float]
) -> None:
    seeding = BlendedSeeding(share_facts=5.0, share_entities=3.0, share_passages=2.0)
    evidence = evidence_of(index, {("a", "r", "b"): 0.0}, dropped=dropped, named=named)
    assert [share(source) for source in seeding.sources(index, evidence)] == pytest.approx(shares)


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ({"share_facts": 0.0}, [0, 0.5, 0.5]),
        ({"share_entities": 0.0}, [0.5, 0, 0.5]),
        ({"share_passages": 0.0}, [0.5, 0.5, 0]),
        ({"share_entities": 0.0, "share_passages": 0.0}, [1, 0, 0]),
    ],
)
def test_a_share_of_0_leaves_a_source_out(index: Index, options: dict, shares: list[float]) -> None:
    seeding = BlendedSeeding(**options)
    found = seeding.sources(index, evidence_of(index, {("a", "r", "b"): 0.0}, named=["c"]))
    assert [source.name for source in found] == ["facts", "entities", "passages"]
    assert [share(source) for source in found] == pytest.approx(shares)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=5, max_size=5), min_size=1, max_size=4
    ),
    st.sampled_from([1, 30, 60, 10**6]),
)
def test_ends_that_are_the_same_phrase_add_up_at_the_first(
    rows: list[list[tuple[int, bool]]], at_once: int
) -> None:
    ends = torch.tensor([[phrase for phrase, _ in row] for row in rows])
    held = torch.tensor([[is_held for _, is_held in row] for row in rows])
    weight = torch.where(held, torch.arange(5.0) + 1, 0.0)
    found = summed_over_phrases(ends, held, weight, comparisons_at_once=at_once)
    for row, (phrases, is_held, sums) in enumerate(
        zip(ends.tolist(), held.tolist(), found.tolist(), strict=True)
    ):
        for place, phrase in enumerate(phrases):
            same = [i for i in range(5) if is_held[i] and phrases[i] == phrase]
            expected = float(weight[row, same].sum()) if same[:1] == [place] else 0.0
            assert sums[place] == expected


def test_only_a_share_above_0_asks_for_links() -> None:
    assert BlendedSeeding().wants_links
    assert not BlendedSeeding(share_entities=0.0).wants_links


def test_scores_far_apart_leave_the_worst_fact_its_ends_where_it_alone_is_kept(index: Index) -> None:
    """Its softmax weight beside the other one is 0 in float32."""
    evidence = evidence_of(index, {("a", "r", "b"): 900.0, ("h", "r", "i"): 0.0}, dropped=[0])
    facts, _, _ = BlendedSeeding().sources(index, evidence)
    assert weights(index, facts).keys() == {"h", "i"}
    assert BlendedSeeding().shown_scores(evidence.facts).tolist() == [[1.0, 0.0]]


def plain_sources(
    index: Index, seeding: BlendedSeeding, evidence: Evidence, row: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Facts and entities of a question, each summing to 1, fact by fact."""
    holders = {
        phrase: sum(any(phrase in (t[0], t[2]) for t in FACTS[p.text]) for p in index.passages)
        for phrase in index.phrases
    }
    kept = evidence.kept[row].tolist()
    scores = np.array(evidence.facts.scores[row].tolist(), dtype=np.float64)[kept]
    exp = np.exp((scores - scores.max(initial=-np.inf)) / seeding.fact_temperature)
    facts: dict[str, float] = defaultdict(float)
    for fact, weight in zip(evidence.facts.idx[row][kept].tolist(), exp / exp.sum(), strict=True):
        subject, _, object_ = index.facts[fact].parts
        for end in (subject, object_):
            facts[end] += weight / holders[end]
    links = evidence.links
    named = [index.phrases[i] for i in links.values[links.row_ptr[row] : links.row_ptr[row + 1]].tolist()]
    entities = {phrase: 1 / holders[phrase] for phrase in named}
    for found in (facts, entities):
        total = sum(found.values())
        for phrase in found:
            found[phrase] /= total
    return facts, entities


@given(data=st.data())
def test_equals_a_plain_reading_of_the_method_and_sums_to_its_shares(
    index: Index, data: st.DataObject
) -> None:
    num_facts, num_passages, num_phrases = len(index.facts), len(index.passages), len(index.phrases)
    considered, questions = data.draw(st.integers(1, num_facts)), data.draw(st.integers(1, 4))
    number = st.floats(-4, 4, width=32)
    rows = [
        (
            data.draw(st.permutations(range(num_facts)))[:considered],
            sorted(data.draw(st.lists(number, min_size=considered, max_size=considered)), reverse=True),
            data.draw(st.lists(st.booleans(), min_size=considered, max_size=considered)),
            data.draw(st.lists(st.floats(-1, 1, width=32), min_size=num_passages, max_size=num_passages)),
        )
        for _ in range(questions)
    ]
    links = [sorted(data.draw(st.sets(st.integers(0, num_phrases - 1), max_size=4))) for _ in rows]
    # Without a fact and without a phrase nothing walks.
    links = [named or ([] if any(row[2]) else [0]) for named, row in zip(links, rows, strict=True)]
    idx, scores, kept, cosines = (torch.tensor(column) for column in zip(*rows, strict=True))
    evidence = Evidence(ConsideredFacts(idx, scores, torch.ones_like(kept)), kept, cosines, Ragged.of(links))
    share = st.floats(0, 3)
    seeding = BlendedSeeding(
        share_facts=data.draw(share),
        share_entities=data.draw(share),
        share_passages=data.draw(st.floats(0.1, 3)),
        fact_temperature=data.draw(st.floats(0.1, 2)),
    )
    found = seeding.sources(index, evidence)
    whole = seeding.share_facts + seeding.share_entities + seeding.share_passages
    both = (seeding.share_facts + seeding.share_entities) / whole
    for row in range(questions):
        facts, entities = plain_sources(index, seeding, evidence, row)
        expected = torch.zeros(index.graph.num_nodes)
        facts_share = seeding.share_facts / whole if entities else both
        entities_share = seeding.share_entities / whole if facts else both
        for stated, part in ((facts, facts_share), (entities, entities_share)):
            for phrase, weight in stated.items():
                expected[index.phrases.index(phrase)] += weight * part
        alone = tuple(source.select(torch.tensor([row])) for source in found)
        reset = reset_of(alone, num_nodes=index.graph.num_nodes)[0]
        torch.testing.assert_close(reset[:num_phrases], expected[:num_phrases], atol=2e-6, rtol=2e-5)
        sums = [float(source.weight.sum()) for source in alone]
        wanted = [facts_share * bool(facts), entities_share * bool(entities), seeding.share_passages / whole]
        assert sums == pytest.approx(wanted, abs=1e-6)
        assert float(reset.sum()) == pytest.approx(1, abs=1e-6)
        for source in alone[:2]:
            nodes = source.node_idx[source.weight > 0].tolist()
            assert len(nodes) == len(set(nodes))
        one = seeding.sources(index, evidence.select(torch.tensor([row])))
        torch.testing.assert_close(reset_of(one, num_nodes=index.graph.num_nodes)[0], reset)


def test_a_kept_fact_that_names_nothing_is_nothing_to_start_from() -> None:
    fact_ends = Ragged.of([[0, 1], [], [2]])
    facts = ConsideredFacts(
        torch.tensor([[1, 0], [1, 2], [0, 1]]), torch.zeros(3, 2), torch.ones(3, 2, dtype=torch.bool)
    )
    kept = torch.tensor([[True, False], [True, True], [False, False]])
    evidence = Evidence(facts, kept, torch.zeros(3, 1), Ragged.of([[], [], [4]]))
    assert evidence.start_from_facts(fact_ends).tolist() == [False, True, False]
    assert evidence.linked.tolist() == [False, False, True]


# Which facts are considered

X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
TABLE = {
    "ada founded press": X,
    "press stands bergen": [0.8, 0.6, 0.0],
    "tove maps ice": Y,
    "ole sails ferry": [-1.0, 0.0, 0.0],
}


@pytest.fixture
def spread(index_of: IndexOf, table_embedder: type) -> Index:
    """Four facts whose cosines with X are 1, 0.8, 0 and −1."""
    facts = {f"p{i}": [tuple(fact.split())] for i, fact in enumerate(TABLE)}
    return index_of(facts, table_embedder(TABLE, otherwise=Z))


def considered(index: Index, question: str, **options: float) -> dict[str, float]:
    seeding = BlendedSeeding(**{"num_facts": 9, **options})  # type: ignore[arg-type]
    found = seeding.consider(index, [question], torch.tensor([X]))
    assert found.like[0].tolist() == sorted(found.like[0].tolist(), reverse=True)
    return {
        " ".join(index.facts[i].parts): score
        for i, score, like in zip(
            found.idx[0].tolist(), found.scores[0].tolist(), found.like[0].tolist(), strict=True
        )
        if like
    }


def test_facts_score_by_cosine_and_shared_words(spread: Index) -> None:
    cosines = np.array([1.0, 0.8, 0.0, -1.0])
    z = (cosines - cosines.mean()) / cosines.std(ddof=1)
    # Nobody sails, but "ole" is a word of one of four texts of three words each: BM25 is (s, 0, 0, 0).
    words = np.array([0.0, 0.0, 0.0, 1.0])
    z_words = (words - 0.25) / words.std(ddof=1)
    assert considered(spread, "who is?") == pytest.approx(
        {"ada founded press": z[0], "press stands bergen": z[1]}, abs=1e-5
    )
    assert considered(spread, "ole?") == pytest.approx(
        {
            "ada founded press": z[0] + 0.2 * z_words[0],
            "press stands bergen": z[1] + 0.2 * z_words[0],
            "ole sails ferry": z[3] + 0.2 * z_words[3],
        },
        abs=1e-5,
    )


def test_without_bm25_a_shared_word_is_nothing(spread: Index) -> None:
    assert considered(spread, "ole?", bm25_weight=0.0).keys() == {"ada founded press", "press stands bergen"}


def test_a_word_may_outweigh_a_cosine(spread: Index) -> None:
    assert next(iter(considered(spread, "ole?", bm25_weight=9.0))) == "ole sails ferry"


def test_num_facts_are_the_best_that_are_like_the_question(spread: Index) -> None:
    assert list(considered(spread, "who?", num_facts=1)) == ["ada founded press"]


@pytest.mark.parametrize("at_once", [1, 25, 10**9])
def test_questions_scored_in_blocks_are_scored_as_one_by_one(index: Index, at_once: int) -> None:
    questions = [f"{word} r" for word in "abcdefghi"]
    vectors = torch.nn.functional.normalize(torch.randn(9, 64, generator=torch.Generator().manual_seed(1)))
    together = BlendedSeeding().consider(index, questions, vectors, scores_at_once=at_once)
    for row in range(9):
        alone = BlendedSeeding().consider(index, questions[row : row + 1], vectors[row : row + 1])
        assert alone.idx[0].tolist() == together.idx[row].tolist()
        torch.testing.assert_close(alone.scores[0], together.scores[row], atol=1e-5, rtol=1e-5)


def test_an_index_without_facts(index_of: IndexOf) -> None:
    index = index_of({"p0": [], "p1": []})
    found = BlendedSeeding().consider(index, ["a?", "b?"], torch.ones(2, 64))
    assert found.idx.shape == found.scores.shape == found.like.shape == (2, 0)


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=30))
def test_standardised_scores_have_mean_0_and_standard_deviation_1(scores: list[float]) -> None:
    found = standardised(torch.tensor([scores]))[0]
    if np.std(scores, ddof=1) < 1e-3:
        assert torch.isfinite(found).all()
        return
    assert float(found.mean()) == pytest.approx(0, abs=1e-4)
    assert float(found.std()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("scores", [[[0.3]], [[0.3, 0.3, 0.3]], [[0.3, 0.3 + 3e-7, 0.3]], [[]]])
def test_scores_that_differ_by_rounding_are_zeros(scores: list[list[float]]) -> None:
    assert standardised(torch.tensor(scores)).tolist() == [[0.0] * len(scores[0])]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_facts": 0}, "seeding.num_facts must be at least 1, got 0"),
        ({"fact_temperature": 0.0}, "seeding.fact_temperature must be finite and above 0, got 0"),
        (
            {"passage_temperature": math.inf},
            "seeding.passage_temperature must be finite and above 0, got inf",
        ),
        ({"bm25_weight": -0.1}, "seeding.bm25_weight must be finite and at least 0, got -0.1"),
        ({"share_facts": -1.0}, "seeding.share_facts must be finite and at least 0, got -1"),
        ({"share_entities": math.nan}, "seeding.share_entities must be finite and at least 0, got nan"),
        ({"start_exponent": 0.0}, "seeding.start_exponent must be above 0 and at most 1, got 0"),
        ({"start_exponent": 1.5}, "seeding.start_exponent must be above 0 and at most 1, got 1.5"),
        (
            {"share_facts": 0.0, "share_entities": 0.0, "share_passages": 0.0},
            "share_passages must have a finite sum above 0, got 0",
        ),
    ],
)
def test_options_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BlendedSeeding(**options)


# Fact pairs


def plain_pairs(index: Index, scores: Sequence[float]) -> list[float]:
    """Every pair with one of the 20 best, fact by fact. Facts without a score take no part."""
    alike = defaultdict(set)
    for a, b in zip(index.synonyms.first_idx.tolist(), index.synonyms.second_idx.tolist(), strict=True):
        alike[a].add(b)
        alike[b].add(a)
    ends = [set(row) for row in _rows(index.fact_ends)]
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[:20]
    found = list(scores)
    for i in best:
        near = ends[i].union(*(alike[end] for end in ends[i]))
        others = [
            j
            for j in range(len(scores))
            if j != i and ends[j] & near and min(scores[i], scores[j]) > -math.inf
        ]
        for j in sorted(others, key=lambda j: (-scores[j], j))[:200]:
            cosine = float(index.fact_emb[i] @ index.fact_emb[j])
            pair = (scores[i] + scores[j]) / math.sqrt(max(0.02, 2 + 2 * cosine))
            found[i], found[j] = max(found[i], pair), max(found[j], pair)
    return found


def _rows(ragged: Ragged) -> list[list[int]]:
    ptr, values = ragged.row_ptr.tolist(), ragged.values.tolist()
    return [values[a:b] for a, b in pairwise(ptr)]


@pytest.mark.parametrize("num_names", [3, 40])
def test_pairs_equal_a_loop(index_of: IndexOf, num_names: int) -> None:
    """With few names every fact has more partners than are looked at."""
    rng = np.random.default_rng(5)
    names = [f"name{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(num_names)]
    facts = {
        f"p{p}": [
            (
                names[rng.integers(num_names)],
                f"verb{'abcdefghij'[rng.integers(10)]}{p}x{k}",
                names[rng.integers(num_names)],
            )
            for k in range(30)
        ]
        for p in range(10)
    }
    index = index_of(facts, synonym_threshold=0.5)
    questions = [f"{names[0]} verba?", f"{names[1]} {names[2]}?", "nothing known"]
    vectors = torch.nn.functional.normalize(
        torch.rand(3, 64, generator=torch.Generator().manual_seed(3)) - 0.3
    )
    plain = BlendedSeeding(num_facts=999).consider(index, questions, vectors)
    paired = BlendedSeeding(num_facts=999, fact_pairs=True).consider(index, questions, vectors)
    for row in range(3):
        scores = torch.empty(len(index.facts))
        scores[plain.idx[row]] = plain.scores[row]
        found = torch.empty(len(index.facts))
        found[paired.idx[row]] = paired.scores[row]
        np.testing.assert_allclose(found, plain_pairs(index, scores.tolist()), rtol=1e-4, atol=1e-5)
    assert (paired.scores[:, 0] > plain.scores[:, 0]).any()


def test_a_fact_that_fits_together_with_the_best_one_rises(index_of: IndexOf, table_embedder: type) -> None:
    """Both halves of a question of two hops: what completes the best fact beats what repeats it."""
    half = 0.5**0.5
    table = {
        "ada founded press": [1.0, 0.0, 0.0],
        "press stands bergen": [0.0, 1.0, 0.0],
        "ole likes ada": [0.7, -((1 - 0.49) ** 0.5), 0.0],
        "tove maps ice": [0.3, -0.3, (1 - 0.18) ** 0.5],
    }
    index = index_of(
        {f"p{i}": [tuple(fact.split())] for i, fact in enumerate(table)}, table_embedder(table, otherwise=Z)
    )
    question = torch.tensor([[half, half, 0.0]])

    def scores(**options: bool) -> dict[str, float]:
        found = BlendedSeeding(bm25_weight=0.0, **options).consider(index, ["?"], question)
        return {
            " ".join(index.facts[i].parts): s
            for i, s in zip(found.idx[0].tolist(), found.scores[0].tolist(), strict=True)
            if s > -math.inf
        }

    alone, paired = scores(), scores(fact_pairs=True)
    assert alone.keys() == paired.keys() == {"ada founded press", "press stands bergen"}
    # Orthogonal, so the pair scores their sum over √2.
    expected = sum(alone.values()) / 2**0.5
    assert paired == pytest.approx(dict.fromkeys(alone, expected), abs=1e-5)
    assert expected > max(alone.values())


def test_neighbours_are_kept_for_each_index(index_of: IndexOf) -> None:
    seeding = BlendedSeeding(fact_pairs=True)
    for facts in (
        {"p": [("a", "r", "b"), ("b", "r", "c")]},
        {"p": [("x", "r", "y"), ("z", "r", "z"), ("y", "r", "w")]},
    ):
        index = index_of(facts)
        expected = BlendedSeeding(fact_pairs=True).consider(index, ["y r"], torch.ones(1, 64) / 8)
        found = seeding.consider(index, ["y r"], torch.ones(1, 64) / 8)
        assert found.scores.tolist() == expected.scores.tolist()
