"""Two halves of a run's questions, so that what is chosen on one can be checked on the other."""

from statistics import fmean
from typing import NamedTuple

import numpy as np

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.run import Evaluation


class Halves(NamedTuple):
    """A metric's mean on either half; the larger half is for searching where they differ."""

    search: float
    held_out: float


def half_means(evaluation: Evaluation, metric: str, *, seed: int = 0) -> Halves:
    """The mean of `metric` on two random halves of the questions that have it.

    `seed` and the ids of the questions decide the halves, not their order: runs over the same questions
    are cut alike. Raises `InputError` if fewer than two questions have the metric.
    """
    values = {row.id: row.metrics[metric] for row in evaluation.rows if metric in row.metrics}
    if len(values) < 2:
        raise InputError(
            f"halves need two questions with the metric {metric!r}, got {len(values)}; leave out halves"
        )
    ids = sorted(values)
    order = np.random.default_rng(seed).permutation(len(ids)).tolist()
    shuffled = [values[ids[row]] for row in order]
    middle = (len(shuffled) + 1) // 2
    return Halves(fmean(shuffled[:middle]), fmean(shuffled[middle:]))
