"""The peer: igraph's PRPACK, one question at a time, as the reference implementation calls it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.graph import Graph


class IgraphPageRank:
    """Personalized PageRank by igraph on the same undirected weighted graph, from prepared Python lists."""

    def __init__(self, graph: Graph, *, damping: float) -> None:
        try:
            import igraph
        except ImportError as error:
            raise ConfigError("this benchmark needs igraph: pip install 'hipporag-torch[peers]'") from error
        row, col = graph.adjacency.row.cpu(), graph.adjacency.col.cpu().long()
        upper = row < col
        edges = torch.stack([row[upper], col[upper]], 1).numpy()
        self._graph: Any = igraph.Graph(n=graph.num_nodes, edges=edges)
        self._graph.es["weight"] = graph.adjacency.weight.cpu()[upper].tolist()
        self._damping = damping

    def walk(self, resets: Sequence[list[float]]) -> np.ndarray:
        """(questions, nodes) masses, each row summing to 1."""
        return np.array(
            [
                self._graph.personalized_pagerank(
                    damping=self._damping,
                    directed=False,
                    weights="weight",
                    reset=reset,
                    implementation="prpack",
                )
                for reset in resets
            ]
        )


def same_order(ours: Tensor, theirs: np.ndarray, *, k: int = 20, tolerance: float = 1e-6) -> bool:
    """Whether our scores of the passages put their `k` best in the same order.

    Neighbours whose scores in `theirs` differ by less than `tolerance`, relative, may stand either way.
    """
    best = np.argsort(-theirs, kind="stable")[: k + 1]
    mine = ours.cpu().double().numpy()
    gap = theirs[best[:-1]] - theirs[best[1:]] > tolerance * theirs[best[:-1]]
    in_order = mine[best[:-1]] > mine[best[1:]]
    rest = np.delete(mine, best)
    return bool((in_order | ~gap).all()) and (
        len(rest) == 0 or bool(rest.max() <= mine[best].min() * (1 + tolerance))
    )
