"""Scores in standard deviations from their mean, one row per question."""

import math

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.retrievers.seeding.evidence import ROUNDING


def standardised(scores: Float32[Tensor, "queries items"]) -> Float32[Tensor, "queries items"]:
    """(score − mean) / standard deviation per row; 0 where scores differ by no more than rounding."""
    num_items = scores.shape[1]
    if num_items < 2:
        return torch.zeros_like(scores)
    centred = scores - scores.mean(1, keepdim=True)
    # Several times faster than torch.std, which updates a running mean.
    std = torch.linalg.vector_norm(centred, dim=1, keepdim=True) / math.sqrt(num_items - 1)
    return torch.where(std > ROUNDING, centred.div_(std), 0.0)
