"""Retrieval and answer metrics for one question. Pure functions; every value is in [0, 1]."""

from collections import Counter
from collections.abc import Sequence

from hipporag_torch.errors import InputError
from hipporag_torch.text import answer_key


def metric_names(ks: Sequence[int]) -> tuple[str, ...]:
    """What the rows of a run with these cut-offs may hold."""
    found = [f"{kind}@{k}" for kind in ("recall", "all_recall") for k in ks]
    return (*found, "mrr", *(f"title/{name}" for name in (*found, "mrr")), "em", "f1")


def recall_at(gold: Sequence[str], ranked: Sequence[str], k: int) -> float:
    """The share of the distinct `gold` that is among the first `k` of `ranked`.

    Raises `InputError` without gold, or for `k` < 1.
    """
    wanted = _require_gold(gold)
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def all_recall_at(gold: Sequence[str], ranked: Sequence[str], k: int) -> float:
    """1 if every `gold` is among the first `k` of `ranked`, else 0. Raises as `recall_at` does."""
    return float(recall_at(gold, ranked, k) == 1.0)


def reciprocal_rank(gold: Sequence[str], ranked: Sequence[str]) -> float:
    """1 / the rank (from 1) of the first `gold` in `ranked`; 0 if none is there.

    Raises `InputError` without gold.
    """
    wanted = _require_gold(gold)
    return next((1 / rank for rank, item in enumerate(ranked, start=1) if item in wanted), 0.0)


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if `prediction` equals one of `answers` (all aliases of one answer) as SQuAD normalises them.

    Raises `InputError` without answers.
    """
    key = answer_key(prediction)
    return max(float(key == answer_key(answer)) for answer in _require_answers(answers))


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """The largest token F1 of `prediction` against any of `answers`, as SQuAD normalises them.

    No common token gives 0, as in SQuAD's script: also where both are empty once normalised.
    Raises `InputError` without answers.
    """
    tokens = answer_key(prediction).split()
    return max(_f1(tokens, answer_key(answer).split()) for answer in _require_answers(answers))


def _f1(prediction: list[str], answer: list[str]) -> float:
    same = (Counter(prediction) & Counter(answer)).total()
    return 2 * same / (len(prediction) + len(answer)) if same else 0.0


def _require_gold(gold: Sequence[str]) -> set[str]:
    if not gold:
        raise InputError("recall and rank need gold items, got none; leave such questions out")
    return set(gold)


def _require_answers(answers: Sequence[str]) -> Sequence[str]:
    if isinstance(answers, str):
        raise InputError(f"answers must be a sequence of strings, got the string {answers!r:.80}; wrap it")
    if not answers:
        raise InputError("exact match and F1 need an answer, got none; leave such questions out")
    return answers
