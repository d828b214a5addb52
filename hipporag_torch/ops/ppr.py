"""Personalized PageRank for many questions at once, on an undirected weighted graph."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.ops.csr import CSR
from hipporag_torch.ops.walk import Walk


@dataclass(frozen=True, kw_only=True)
class PPROptions:
    """How the walk is solved.

    damping: probability of going on instead of restarting, in (0, 1); HippoRAG 2 uses 0.5.
    method: `chebyshev`, or `power` as the slower check.
    tolerance: what the error shrinks to, as a share of what it is at the start, in the norm in which P is
        symmetric; it sets the number of sweeps (12 for the default). A hub can enlarge it at its nodes.
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
        """α of each sweep x ← x + α·((1−d)·r + d·P·x − x); as many as shrink the error by `tolerance`.

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
    `options.tile` questions are solved at a time: beside `reset` and the result, memory is four
    (nodes, tile) blocks. A `reset` whose nodes are outermost in memory saves a transposition, and the
    result is laid out so.

    Raises `InputError` if a row of `reset` has negative or non-finite entries, or sums to 0.
    """
    num_queries, num_nodes = reset.shape
    if num_nodes != walk.num_nodes:
        raise InputError(f"the reset has {num_nodes} columns, the graph has {walk.num_nodes} nodes")
    damped = walk.damped(options.damping)
    mass = reset.new_empty(num_nodes, num_queries).T if num_queries > options.tile else None
    for start in range(0, num_queries, options.tile):
        rows = slice(start, start + options.tile)
        restart = walk.gather(reset[rows])
        total = restart.sum(0)
        _check_restart(walk, restart, total, first_question=start)
        restart.mul_((1 - options.damping) / total)
        # A relaxation goes into whichever is smaller, the vectors or the matrix.
        by_vectors = restart.numel() < damped.num_entries
        solve = _relaxed_vectors if by_vectors else _relaxed_matrix
        x = solve(walk, damped, restart, options.relaxations)
        # A sweep may overshoot: a node with hardly any mass can end a rounding error below 0.
        x.clamp_(min=0)
        solved = walk.scatter(x.div_(x.sum(0)))
        if mass is None:
            return solved
        mass[rows] = solved
    return reset.new_empty(0, num_nodes) if mass is None else mass


def _relaxed_vectors(
    walk: Walk, damped: CSR, restart: Float32[Tensor, "nodes batch"], relaxations: Sequence[float]
) -> Float32[Tensor, "nodes batch"]:
    """x ← x + α·(restart + d·P·x − x) for each α, from x = restart."""
    x = restart
    for alpha in relaxations:
        x = torch.lerp(x, damped.matmul_add(x, restart), alpha)
    return x


def _relaxed_matrix(
    walk: Walk, damped: CSR, restart: Float32[Tensor, "nodes batch"], relaxations: Sequence[float]
) -> Float32[Tensor, "nodes batch"]:
    """The same up to a positive factor, with one pass less over the block in each sweep.

    With s the product of the α so far and z = x / s, the sweep is z ← (d·P + (1/α − 1)·I)·z + restart / s:
    only the diagonal of the matrix changes. Most nodes seed no question: only the others' rows are added.
    """
    seeds = (restart.amax(1) > 0).nonzero()[:, 0]
    seeded = restart.index_select(0, seeds)
    z, scale = restart, 1.0
    step = replace(damped, weight=damped.weight.clone())
    for alpha in relaxations:
        step.weight.index_fill_(0, walk.diagonal, 1 / alpha - 1)
        z = step.matmul(z)
        z.index_copy_(0, seeds, z.index_select(0, seeds).add_(seeded, alpha=1 / scale))
        scale *= alpha
    return z


def _check_restart(
    walk: Walk,
    restart: Float32[Tensor, "nodes batch"],
    total: Float32[Tensor, " batch"],
    *,
    first_question: int,
) -> None:
    """Raise `InputError` unless every column is finite, not negative and has something to restart from."""
    # A finite sum above 0 leaves only negative entries to look for: the usual case takes one more pass.
    if bool((torch.isfinite(total) & (total > 0)).all()) and float(restart.min()) >= 0:
        return
    bad = (~torch.isfinite(restart) | (restart < 0)).T.nonzero().tolist()
    if bad:
        column, row = bad[0]
        raise InputError(
            f"question {first_question + column} has the reset weight {restart[row, column].item()} at node "
            f"{int(walk.order[row])}; reset weights must be finite and not negative"
        )
    if bool((total <= 0).any()):
        question = first_question + int((total <= 0).nonzero()[0])
        raise InputError(
            f"the reset of question {question} sums to 0; "
            "give at least one node a positive weight, or rank this question without the graph"
        )
    question = first_question + int((~torch.isfinite(total)).nonzero()[0])
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
