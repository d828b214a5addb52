"""Rescaling of scores, one row per question."""

import torch
from jaxtyping import Float32
from torch import Tensor


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
