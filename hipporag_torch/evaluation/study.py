"""The runs of a study as rows: each one's means, and its difference to the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.compare import compare_runs
from hipporag_torch.evaluation.halves import Halves, half_means
from hipporag_torch.evaluation.run import Evaluation
from hipporag_torch.evaluation.variants import Study


@dataclass(frozen=True)
class StudyRow:
    """One variant's run.

    `metrics` are the run's means. `value` is that of the study's `metric`; `difference` is `value` less that
    of `baseline`, with the paired bootstrap's 95 % interval from `low` to `high`; `won` and `lost` count the
    questions. `search` and `held_out` are its value on either half of the questions, if the study asks.
    """

    name: str
    overrides: tuple[str, ...]
    drawn: bool
    metric: str
    baseline: str
    value: float
    difference: float
    low: float
    high: float
    won: int
    lost: int
    search: float | None
    held_out: float | None
    metrics: Mapping[str, float]

    @property
    def searched(self) -> float:
        """What a search may choose by: the value on the half for searching, if there are halves."""
        return self.value if self.search is None else self.search


def require_metric(evaluation: Evaluation, metric: str) -> None:
    """Raise `InputError` unless a question of `evaluation` has `metric`."""
    known = list(dict.fromkeys(name for row in evaluation.rows for name in row.metrics))
    if metric not in known:
        raise InputError(
            f"study.metric must be a metric of the questions, got {metric!r}; "
            f"they have {', '.join(known) or 'none: no question has gold passages'}"
        )


def study_rows(study: Study, runs: Mapping[str, Evaluation]) -> tuple[StudyRow, ...]:
    """One row per variant, in the study's order. `runs` holds each variant's, by its name."""
    baseline = runs[study.baseline.name]
    rows = []
    for variant in study.variants:
        run = runs[variant.name]
        compared = compare_runs(baseline, run, metric=study.metric)
        halves: Halves | None = half_means(run, study.metric) if study.halves else None
        rows.append(
            StudyRow(
                name=variant.name,
                overrides=variant.overrides,
                drawn=variant.drawn,
                metric=study.metric,
                baseline=study.baseline.name,
                value=compared.mean_b,
                difference=compared.difference,
                low=compared.low,
                high=compared.high,
                won=len(compared.won),
                lost=len(compared.lost),
                search=halves.search if halves else None,
                held_out=halves.held_out if halves else None,
                metrics=run.metrics,
            )
        )
    return tuple(rows)


def drawn_ends(rows: Sequence[StudyRow]) -> dict[str, StudyRow]:
    """The worst, median and best of the drawn rows by what a search may choose by; none without any.

    Of an even number the median is the lower of the two in the middle; of equals the earlier is lower.
    """
    drawn = sorted((row for row in rows if row.drawn), key=lambda row: row.searched)
    if not drawn:
        return {}
    return {"worst": drawn[0], "median": drawn[(len(drawn) - 1) // 2], "best": drawn[-1]}
