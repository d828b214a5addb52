"""Personalized PageRank for many questions at once, on an undirected weighted graph."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.ops.walk import Walk


@dataclass(frozen=True, kw_only=True)
class PPROptions:
    """How the walk is solved.

    damping: probability of going on instead of restarting, in (0, 1); HippoRAG 2 uses 0.5.
    method: `chebyshev`, or `power` as the slower check.
    tolerance: bound on the error that is left; it sets the number of sweeps (12 for the default).
    tile: questions per sweep; 16 to 32 columns are fastest on CPU.
    """

    damping: float = 0.5
    method: Literal["chebyshev", "power"] = "chebyshev"
    tolerance: float = 2e-7
    tile: int = 32

    def __post_init__(self) -> None:
        if not 0 < self.damping < 1:
            raise ConfigError(f"ppr.damping must lie between 0 and 1, both excluded, got {self.damping}")
        if self.method not in ("chebyshev", "power"):
            raise ConfigError(f"ppr.method must be chebyshev or power, got {self.method!r}")
        if not 0 < self.tolerance < 1:
            raise ConfigError(f"ppr.tolerance must lie between 0 and 1, both excluded, got {self.tolerance}")
        if self.tile < 1:
            raise ConfigError(f"ppr.tile must be at least 1, got {self.tile}")

    @cached_property
    def relaxations(self) -> tuple[float, ...]:
        """α of each sweep x ← x + α·((1−d)·r + d·P·x − x); as many as bring the error below `tolerance`.

        Power iteration is α = 1, and shrinks the error by d a sweep. P is similar to a symmetric matrix
        with its spectrum in [−1, 1], so the best α for a given number of sweeps are the inverses of the
        Chebyshev nodes of I − d·P (Richardson's iteration; Saad, Iterative Methods for Sparse Linear
        Systems, §12.3.2), which shrink it by d / (1 + √(1 − d²)).
        """
        d = self.damping
        rate = d if self.method == "power" else d / (1 + math.sqrt(1 - d * d))
        sweeps = max(1, math.ceil(math.log(self.tolerance) / math.log(rate)))
        if self.method == "power":
            return (1.0,) * sweeps
        nodes = [1 - d * math.cos((2 * k + 1) * math.pi / (2 * sweeps)) for k in range(sweeps)]
        return tuple(1 / node for node in _leja_ordered(nodes))


def personalized_pagerank(
    walk: Walk, reset: Float32[Tensor, "queries nodes"], options: PPROptions
) -> Float32[Tensor, "queries nodes"]:
    """The x with x = (1−d)·r + d·P·x for each row r of `reset`, scaled to sum 1.

    A node without edges would send its mass back to r. Ignoring that solves the same system up to a
    factor, which the scaling removes: the result is exact (as igraph's PRPACK defines it).
    `options.tile` questions are solved at a time: beside `reset` and the result, memory is three
    (nodes, tile) blocks.

    Raises `InputError` if a row of `reset` has negative or non-finite entries, or sums to 0.
    """
    if reset.shape[1] != walk.num_nodes:
        raise InputError(f"the reset has {reset.shape[1]} columns, the graph has {walk.num_nodes} nodes")
    check_reset(reset)
    d = options.damping
    damped = replace(walk.share, weight=walk.share.weight * d)
    mass = torch.empty_like(reset)
    for start in range(0, reset.shape[0], options.tile):
        rows = slice(start, start + options.tile)
        x = walk.gather(reset[rows])
        x /= x.sum(0)
        restart = x * (1 - d)
        for alpha in options.relaxations:
            x = walk.relax(damped, x, restart, alpha)
        # A sweep may overshoot: a node with hardly any mass can end a rounding error below 0.
        x.clamp_(min=0)
        mass[rows] = walk.scatter(x.div_(x.sum(0)))
    return mass


def check_reset(reset: Float32[Tensor, "queries nodes"]) -> None:
    """Raise `InputError` unless every row is finite, non-negative and has something to restart from."""
    total = reset.sum(1)
    # A finite sum above 0 leaves only negative entries to look for: the usual case takes two passes.
    if bool((torch.isfinite(total) & (total > 0)).all()) and (not reset.numel() or float(reset.min()) >= 0):
        return
    bad = (~torch.isfinite(reset) | (reset < 0)).nonzero().tolist()
    if bad:
        question, node = bad[0]
        raise InputError(
            f"question {question} has the reset weight {reset[question, node].item()} at node {node}; "
            "reset weights must be finite and not negative"
        )
    if bool((total <= 0).any()):
        raise InputError(
            f"the reset of question {int((total <= 0).nonzero()[0])} sums to 0; "
            "give at least one node a positive weight, or rank this question without the graph"
        )
    question = int((~torch.isfinite(total)).nonzero()[0])
    raise InputError(
        f"the reset of question {question} sums to more than float32 can hold; "
        "scale it down: only the ratios of its weights count"
    )


def _leja_ordered(nodes: list[float]) -> list[float]:
    """The nodes in an order that keeps every partial product of their factors small, so that rounding
    errors of early sweeps are not blown up by later ones: each is the farthest from those before it."""
    ordered = [max(nodes)]
    rest = [node for node in nodes if node != ordered[0]]
    while rest:
        ordered.append(max(rest, key=lambda node: sum(math.log(abs(node - other)) for other in ordered)))
        rest.remove(ordered[-1])
    return ordered
