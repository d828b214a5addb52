"""Whose mass a passage holds: PageRank is linear, so each source is walked from alone."""

from collections.abc import Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.graph import Graph
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.retrievers.seeding import SeedSource, reset_of


def source_masses(
    graph: Graph,
    sources: Sequence[SeedSource],
    options: PPROptions,
) -> Float32[Tensor, "sources queries passages"]:
    """What each source adds to the mass of every passage in the walk from all sources together.

    `personalized_pagerank` scales every walk to sum 1, after it has lost what flows on from nodes without
    edges: of a reset r that sums to 1, 1 − d·r(nodes without edges) is left. Sources differ in that, so each
    walk is scaled back by what it had left, and all of them by what the joint walk had.
    """
    without_edges = graph.degree == 0
    totals = torch.stack([source.weight.sum(1) for source in sources])
    shares = totals / totals.sum(0)
    masses, left = [], []
    for source, total, share in zip(sources, totals, shares, strict=True):
        rows = total.nonzero()[:, 0]
        mass = source.weight.new_zeros(len(total), graph.num_passages)
        lost = torch.zeros_like(total)
        if len(rows):
            alone = SeedSource(
                source.name, source.node_idx[rows], source.weight[rows] / total[rows].unsqueeze(1)
            )
            reset = reset_of([alone], num_nodes=graph.num_nodes)
            walked = personalized_pagerank(graph.walk, reset, options)
            mass[rows] = walked[:, graph.num_phrases :]
            lost[rows] = options.damping * reset[:, without_edges].sum(1)
        left.append(share * (1 - lost))
        masses.append(mass)
    scale = torch.stack(left) / torch.stack(left).sum(0)
    return torch.stack(masses) * scale.unsqueeze(2)


def power_mean(
    source_mass: Float32[Tensor, "sources queries passages"], exponent: float
) -> Float32[Tensor, "queries passages"]:
    """(Σ mass^e)^(1/e) over the sources: their sum for e = 1; the less e, the more several sources count."""
    return source_mass.pow(exponent).sum(0).pow(1 / exponent)
