from hypothesis import assume, given
from hypothesis import strategies as st

from hipporag_torch.evaluation.metrics import (
    all_recall_at,
    exact_match,
    recall_at,
    reciprocal_rank,
    token_f1,
)
from hipporag_torch.text import answer_key

ITEMS = st.sampled_from("abcdefgh")
GOLD = st.lists(ITEMS, min_size=1, max_size=5)
RANKED = st.lists(ITEMS, unique=True)
ANSWER = st.text("ab The!-é ", max_size=12)


@given(gold=GOLD, ranked=RANKED, k=st.integers(1, 10))
def test_recall_is_bounded_monotone_and_at_least_all_recall(
    gold: list[str], ranked: list[str], k: int
) -> None:
    recall = recall_at(gold, ranked, k)
    assert 0 <= recall <= recall_at(gold, ranked, k + 1) <= 1
    assert all_recall_at(gold, ranked, k) <= recall
    assert (recall == 1) == (set(gold) <= set(ranked[:k]))


@given(gold=GOLD, ranked=RANKED, k=st.integers(1, 10))
def test_a_hit_within_k_bounds_the_reciprocal_rank(gold: list[str], ranked: list[str], k: int) -> None:
    rank = reciprocal_rank(gold, ranked)
    assert (rank >= 1 / k) == (recall_at(gold, ranked, k) > 0)


@given(prediction=ANSWER, answer=ANSWER)
def test_f1_is_symmetric_and_bounded(prediction: str, answer: str) -> None:
    assert token_f1(prediction, [answer]) == token_f1(answer, [prediction])
    assert 0 <= token_f1(prediction, [answer]) <= 1


@given(prediction=ANSWER, answers=st.lists(ANSWER, min_size=1, max_size=3))
def test_an_exact_match_has_f1_1(prediction: str, answers: list[str]) -> None:
    assume(answer_key(prediction))
    if exact_match(prediction, answers) == 1:
        assert token_f1(prediction, answers) == 1


@given(prediction=ANSWER, answers=st.lists(ANSWER, min_size=1, max_size=3), more=ANSWER)
def test_an_alias_more_never_lowers_a_score(prediction: str, answers: list[str], more: str) -> None:
    assert exact_match(prediction, [*answers, more]) >= exact_match(prediction, answers)
    assert token_f1(prediction, [*answers, more]) >= token_f1(prediction, answers)
