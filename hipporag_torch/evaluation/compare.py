"""Two runs over the same questions, compared question by question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.run import Evaluation, QuestionRow

# Resampled numbers held at a time: 8 MiB of indices and 8 MiB of values.
_BLOCK = 2**20


@dataclass(frozen=True)
class QuestionPair:
    """One question's value of a metric in either run."""

    id: str
    question: str
    a: float
    b: float


@dataclass(frozen=True)
class Comparison:
    """Run B against run A by one metric.

    difference: mean of B − mean of A; `low` and `high` bound it: the paired bootstrap's percentile
        interval at `confidence`.
    share_positive: the share of resamples in which B is better, in [0, 1].
    won, lost, equal: the questions on which B is better, worse, the same, in A's order.
    """

    metric: str
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    confidence: float
    share_positive: float
    won: tuple[QuestionPair, ...]
    lost: tuple[QuestionPair, ...]
    equal: tuple[QuestionPair, ...]

    @property
    def questions(self) -> int:
        """How many questions were compared: those that the metric is defined for."""
        return len(self.won) + len(self.lost) + len(self.equal)


def compare_runs(
    run_a: Evaluation,
    run_b: Evaluation,
    *,
    metric: str = "recall@5",
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Comparison:
    """Compare by `metric`, any name that the rows of both runs hold.

    Questions are resampled with replacement, A's and B's value of a question together. The same runs
    and options give the same interval.

    Raises `InputError` if the runs are not over the same questions, if the metric is unknown, or if
    `resamples` < 1 or `confidence` is not between 0 and 1.
    """
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples}")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, such as 0.95, got {confidence}")
    pairs = _pairs(run_a, run_b, metric)
    a = np.array([pair.a for pair in pairs])
    b = np.array([pair.b for pair in pairs])
    means = _resampled_means(b - a, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Comparison(
        metric=metric,
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        difference=float((b - a).mean()),
        low=float(low),
        high=float(high),
        confidence=confidence,
        # Wins and losses that cancel out can leave a last bit behind: that is no difference.
        share_positive=float((means > 1e-12).mean()),
        won=tuple(pair for pair in pairs if pair.b > pair.a),
        lost=tuple(pair for pair in pairs if pair.b < pair.a),
        equal=tuple(pair for pair in pairs if pair.b == pair.a),
    )


def compare_table(
    run_a: Evaluation,
    run_b: Evaluation,
    *,
    metrics: Sequence[str] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[Comparison, ...]:
    """`compare_runs` for each of `metrics`, in order; None takes all that both runs hold."""
    names = shared_metrics(run_a, run_b) if metrics is None else metrics
    return tuple(
        compare_runs(run_a, run_b, metric=name, resamples=resamples, seed=seed, confidence=confidence)
        for name in names
    )


def shared_metrics(run_a: Evaluation, run_b: Evaluation) -> tuple[str, ...]:
    """The names of the per-question metrics that both runs hold, in A's order."""
    in_b = {name for row in run_b.rows for name in row.metrics}
    return tuple(dict.fromkeys(name for row in run_a.rows for name in row.metrics if name in in_b))


def _resampled_means(values: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """`resamples` means, each of as many draws from `values` (one dimension, not empty) as it has."""
    means = np.empty(resamples)
    block = max(1, _BLOCK // len(values))
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        means[start:stop] = values[rng.integers(0, len(values), (stop - start, len(values)))].mean(axis=1)
    return means


def _pair_rows(run_a: Evaluation, run_b: Evaluation) -> list[tuple[QuestionRow, QuestionRow]]:
    a, b = _by_id(run_a, "A"), _by_id(run_b, "B")
    if a.keys() != b.keys():
        only_a, only_b = sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys())
        raise InputError(
            f"the runs are not over the same questions: {len(only_a)} only in A {only_a[:5]}, "
            f"{len(only_b)} only in B {only_b[:5]}; compare runs of one data set with one limit"
        )
    for row in a.values():
        # Ids that are row numbers agree between any two data sets.
        if row.question != b[row.id].question:
            raise InputError(
                f"question {row.id!r} is {row.question!r:.80} in A and {b[row.id].question!r:.80} in B; "
                "compare runs of one data set"
            )
    return [(row, b[row.id]) for row in a.values()]


def _by_id(run: Evaluation, name: str) -> Mapping[str, QuestionRow]:
    rows = {row.id: row for row in run.rows}
    if len(rows) != len(run.rows):
        twice, _ = Counter(row.id for row in run.rows).most_common(1)[0]
        raise InputError(f"run {name} holds question {twice!r} more than once; expected every id once")
    return rows


def _pairs(run_a: Evaluation, run_b: Evaluation, metric: str) -> list[QuestionPair]:
    known = ", ".join(shared_metrics(run_a, run_b)) or "none"
    pairs = []
    for a, b in _pair_rows(run_a, run_b):
        if (metric in a.metrics) != (metric in b.metrics):
            run, other = ("A", "B") if metric in a.metrics else ("B", "A")
            raise InputError(
                f"{metric!r} of question {a.id!r} is in run {run} but not in run {other}; known to both are "
                f"{known}: choose among them, or evaluate both runs with the same gold and ks"
            )
        if metric in a.metrics:
            pairs.append(QuestionPair(a.id, a.question, a.metrics[metric], b.metrics[metric]))
    if not pairs:
        raise InputError(f"no question has the metric {metric!r}; known metrics are {known}")
    return pairs
