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
    resets = [reset_of([source], num_nodes=graph.num_nodes) for source in sources]
    # Nodes outermost in memory, as PageRank wants them; a source's rows stand together.
    reset = torch.cat([each.T for each in resets], 1).T
    total = reset.sum(1)
    rows = total.nonzero()[:, 0]
    walked = personalized_pagerank(graph.walk, reset if len(rows) == len(total) else reset[rows], options)
    mass = reset.new_zeros(len(total), graph.num_passages)
    mass[rows] = walked[:, graph.num_phrases :]
    left = total - options.damping * reset[:, graph.degree == 0].sum(1)
    left = left.view(len(sources), -1)
    return mass.view(len(sources), -1, graph.num_passages) * (left / left.sum(0)).unsqueeze(2)


def power_mean(
    source_mass: Float32[Tensor, "sources queries passages"], exponent: float
) -> Float32[Tensor, "queries passages"]:
    """The power mean of what the sources give, times their number: their sum for e = 1, and at most that.

    The less e is, the more a passage loses that one source reaches and the others do not; one to which all
    give the same keeps its mass.
    """
    return source_mass.pow(exponent).mean(0).pow(1 / exponent).mul(len(source_mass))
