"""Runs over the same questions, compared question by question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.bootstrap import Resampled, require_options, resample
from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.evaluation.run import Evaluation


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


@dataclass(frozen=True)
class MeanInterval:
    """A run's mean over the `questions` that have the metric, and the percentile interval of that mean."""

    mean: float
    low: float
    high: float
    questions: int


class RunTable:
    """Several runs over the same questions, whose questions are resampled once for all metrics.

    A question's values of all metrics in all runs are drawn together, so that every difference is paired.
    The same runs and options give the same numbers, and a metric gets the same ones among others as alone.

    runs: by name; the order of the first one's rows is the order of all. metrics: the names to resample;
        None takes all that the rows hold.

    Raises `InputError` if the runs are not over the same questions, or if `resamples` < 1, `seed` < 0 or
    `confidence` is not between 0 and 1.
    """

    def __init__(
        self,
        runs: Mapping[str, Evaluation],
        *,
        metrics: Sequence[str] | None = None,
        resamples: int = 10_000,
        seed: int = 0,
        confidence: float = 0.95,
    ) -> None:
        require_options(resamples, seed, confidence)
        if not runs:
            raise InputError("a table needs one run or more, got none")
        self.resamples, self.seed, self.confidence = resamples, seed, confidence
        self._rows = _aligned(runs)
        wanted = None if metrics is None else frozenset(metrics)
        keys = [
            (name, metric)
            for name in self._rows
            for metric in _metrics_of(self._rows[name])
            if wanted is None or metric in wanted
        ]
        columns = [
            [row.metrics[metric] for row in self._rows[name] if metric in row.metrics]
            for name, metric in keys
        ]
        self._drawn: dict[tuple[str, str], Resampled] = dict(
            zip(keys, resample(columns, resamples=resamples, seed=seed), strict=True)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._rows)

    def rows(self, name: str) -> tuple[QuestionRow, ...]:
        """A run's rows in the common order."""
        return self._rows[name]

    def metrics_of(self, name: str) -> tuple[str, ...]:
        """The metrics of a run that were resampled, in its own order."""
        return tuple(metric for run, metric in self._drawn if run == name)

    def mean(self, name: str, metric: str) -> MeanInterval | None:
        """A run's mean with its interval; None if none of its questions has the metric."""
        drawn = self._drawn.get((name, metric))
        if drawn is None:
            return None
        return MeanInterval(drawn.mean, *drawn.bounds(self.confidence), drawn.rows)

    def compare(self, a: str, b: str, metric: str) -> Comparison:
        """Run `b` against run `a`.

        Raises `InputError` if a question has the metric in one run alone, or none has it.
        """
        pairs = self._pairs(a, b, metric)
        drawn_a, drawn_b = self._drawn[a, metric], self._drawn[b, metric]
        difference = drawn_b - drawn_a
        low, high = difference.bounds(self.confidence)
        return Comparison(
            metric=metric,
            mean_a=drawn_a.mean,
            mean_b=drawn_b.mean,
            difference=difference.mean,
            low=low,
            high=high,
            confidence=self.confidence,
            share_positive=difference.share_positive,
            won=tuple(pair for pair in pairs if pair.b > pair.a),
            lost=tuple(pair for pair in pairs if pair.b < pair.a),
            equal=tuple(pair for pair in pairs if pair.b == pair.a),
        )

    def _pairs(self, a: str, b: str, metric: str) -> list[QuestionPair]:
        rows_a, rows_b = self._rows[a], self._rows[b]
        known = ", ".join(_shared(rows_a, rows_b)) or "none"
        pairs = []
        for row_a, row_b in zip(rows_a, rows_b, strict=True):
            if (metric in row_a.metrics) != (metric in row_b.metrics):
                run, other = (a, b) if metric in row_a.metrics else (b, a)
                raise InputError(
                    f"{metric!r} of question {row_a.id!r} is in run {run} but not in run {other}; known to "
                    f"both are {known}: choose among them, or evaluate both runs with the same gold and ks"
                )
            if metric in row_a.metrics:
                values = row_a.metrics[metric], row_b.metrics[metric]
                pairs.append(QuestionPair(row_a.id, row_a.question, *values))
        if not pairs:
            raise InputError(f"no question has the metric {metric!r}; known metrics are {known}")
        return pairs


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

    Raises `InputError` if the runs are not over the same questions, if the metric is unknown, or for the
    options that `RunTable` refuses.
    """
    options = {"resamples": resamples, "seed": seed, "confidence": confidence}
    return RunTable({"A": run_a, "B": run_b}, metrics=[metric], **options).compare("A", "B", metric)


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
    options = {"resamples": resamples, "seed": seed, "confidence": confidence}
    table = RunTable({"A": run_a, "B": run_b}, metrics=names, **options)
    return tuple(table.compare("A", "B", name) for name in names)


def shared_metrics(run_a: Evaluation, run_b: Evaluation) -> tuple[str, ...]:
    """The names of the per-question metrics that both runs hold, in A's order."""
    return _shared(run_a.rows, run_b.rows)


def _metrics_of(rows: Sequence[QuestionRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row.metrics))


def _shared(rows_a: Sequence[QuestionRow], rows_b: Sequence[QuestionRow]) -> tuple[str, ...]:
    in_b = frozenset(_metrics_of(rows_b))
    return tuple(name for name in _metrics_of(rows_a) if name in in_b)


def _aligned(runs: Mapping[str, Evaluation]) -> dict[str, tuple[QuestionRow, ...]]:
    """Each run's rows in the first one's order."""
    by_id = {name: _by_id(run, name) for name, run in runs.items()}
    first, a = next(iter(by_id.items()))
    for other, b in by_id.items():
        if a.keys() != b.keys():
            only_a, only_b = sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys())
            raise InputError(
                f"the runs are not over the same questions: {len(only_a)} only in {first} {only_a[:5]}, "
                f"{len(only_b)} only in {other} {only_b[:5]}; compare runs of one data set with one limit"
            )
        for row in a.values():
            # Ids that are row numbers agree between any two data sets.
            if row.question != b[row.id].question:
                raise InputError(
                    f"question {row.id!r} is {row.question!r:.80} in {first} and "
                    f"{b[row.id].question!r:.80} in {other}; compare runs of one data set"
                )
    return {name: tuple(rows[key] for key in a) for name, rows in by_id.items()}


def _by_id(run: Evaluation, name: str) -> Mapping[str, QuestionRow]:
    rows = {row.id: row for row in run.rows}
    if len(rows) != len(run.rows):
        twice, _ = Counter(row.id for row in run.rows).most_common(1)[0]
        raise InputError(f"run {name} holds question {twice!r} more than once; expected every id once")
    return rows
