"""Recall over k, with the uncertainty of the questions: what a plot of runs draws."""

import re
from dataclasses import dataclass

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.compare import RunTable
from hipporag_torch.evaluation.run import Evaluation

_RECALL = re.compile(r"recall@(\d+)")


@dataclass(frozen=True)
class Curve:
    """A run's mean recall@k at each of `ks`, which rise; `low` and `high` bound the means. All in [0, 1]."""

    name: str
    ks: tuple[int, ...]
    means: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def recall_curve(
    run: Evaluation, name: str, *, resamples: int = 10_000, seed: int = 0, confidence: float = 0.95
) -> Curve:
    """The passage recall of `run` at every k that its rows hold, with the bootstrap's percentile intervals.

    Raises `InputError` if no question has recall, and for the options that `RunTable` refuses.
    """
    metrics = sorted({metric for row in run.rows for metric in row.metrics if _RECALL.fullmatch(metric)})
    table = RunTable({name: run}, metrics=metrics, resamples=resamples, seed=seed, confidence=confidence)
    curve = curve_of(table, name)
    if curve is None:
        raise InputError(f"{name} has no recall@k to draw: none of its questions has gold passages")
    return curve


def curve_of(table: RunTable, name: str) -> Curve | None:
    """The curve of a run of `table`; None if recall at no k was resampled for it."""
    means = {
        int(found[1]): mean
        for metric in table.metrics_of(name)
        if (found := _RECALL.fullmatch(metric)) and (mean := table.mean(name, metric))
    }
    if not means:
        return None
    ks = tuple(sorted(means))
    return Curve(
        name=name,
        ks=ks,
        means=tuple(means[k].mean for k in ks),
        low=tuple(means[k].low for k in ks),
        high=tuple(means[k].high for k in ks),
    )
