"""Rescaling of scores, one row per question."""

import math

import torch
from jaxtyping import Float32
from torch import Tensor

ROUNDING = 1e-6
"""A product of two unit vectors that is really 0 comes out as less than this, differently in each batch."""


def minmax(
    scores: Float32[Tensor, "queries items"],
    lowest: Float32[Tensor, " queries"] | None = None,
    highest: Float32[Tensor, " queries"] | None = None,
) -> Float32[Tensor, "queries items"]:
    """(score − lowest) / (highest − lowest) per row; a row whose scores are all equal becomes ones.

    The extremes are those of the row unless given (for scores that are a selection of a longer row).
    """
    if scores.shape[1] == 0:
        return scores
    low = (scores.amin(1) if lowest is None else lowest).unsqueeze(1)
    high = (scores.amax(1) if highest is None else highest).unsqueeze(1)
    spread = high - low
    return torch.where(spread > 0, (scores - low) / spread, torch.ones_like(scores))


def standardised(scores: Float32[Tensor, "queries items"]) -> Float32[Tensor, "queries items"]:
    """(score − mean) / standard deviation per row; 0 where scores differ by no more than rounding."""
    num_items = scores.shape[1]
    if num_items < 2:
        return torch.zeros_like(scores)
    centred = scores - scores.mean(1, keepdim=True)
    # Several times faster than torch.std, which updates a running mean.
    std = torch.linalg.vector_norm(centred, dim=1, keepdim=True) / math.sqrt(num_items - 1)
    return torch.where(std > ROUNDING, centred.div_(std), 0.0)
