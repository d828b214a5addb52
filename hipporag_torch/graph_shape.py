"""How many edges the nodes of an index's graph have, and what these weigh, as counts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.index import Index

EdgeShape = Literal["fact", "fact and synonym", "synonym", "membership", "mention"]
# Fewer bins would hide a shape, more would leave most of them empty.
_WEIGHT_BINS = 20
# Weights that spread further than this have bins that widen.
_WIDE = 8.0


@dataclass(frozen=True)
class Histogram:
    """`counts[i]` values lie in [`edges[i]`, `edges[i + 1]`); the last bin holds its upper edge too.

    Without values there are neither edges nor counts.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True)
class GraphHistograms:
    """The shape of a graph.

    phrase_degrees, passage_degrees: nodes by their number of edges, in bins [1, 2), [2, 4), [4, 8), …
    lone_phrases, lone_passages: how many nodes have no edge, and are in no bin.
    weights: edges by weight, for each kind that there is. Every edge is of one kind, so they add up to the
        graph's edges.
    """

    phrase_degrees: Histogram
    passage_degrees: Histogram
    lone_phrases: int
    lone_passages: int
    weights: Mapping[EdgeShape, Histogram]


def graph_histograms(index: Index) -> GraphHistograms:
    """Count the nodes of `index`'s graph by degree and its edges by weight.

    An edge between phrases is a "fact" if a triple joins them, a "synonym" if their cosine reaches the
    threshold, or both at once; its weight is then what both make. One between a phrase and a passage is a
    "membership" if the passage states the phrase, else a "mention".
    """
    graph = index.graph
    degrees = graph.adjacency.row_ptr.diff().cpu()
    phrases, passages = degrees[: graph.num_phrases], degrees[graph.num_phrases :]
    kinds, weights = _edges(index)
    return GraphHistograms(
        _degree_histogram(phrases),
        _degree_histogram(passages),
        int((phrases == 0).sum()),
        int((passages == 0).sum()),
        {
            kind: _weight_histogram(weights[kinds == number])
            for number, kind in enumerate(_KINDS)
            if bool((kinds == number).any())
        },
    )


_KINDS: tuple[EdgeShape, ...] = ("fact", "fact and synonym", "synonym", "membership", "mention")


def _edges(index: Index) -> tuple[Int64[Tensor, " edges"], Float32[Tensor, " edges"]]:
    """The kind of each edge, as a place in `_KINDS`, and its weight; each edge once."""
    adjacency, num_phrases = index.graph.adjacency, index.graph.num_phrases
    row, col = adjacency.row.cpu(), adjacency.col.long().cpu()
    once = row < col
    low, high, weight = row[once], col[once], adjacency.weight.cpu()[once]
    num_nodes = index.graph.num_nodes
    key = low * num_nodes + high
    stated, synonyms = index.statements, index.synonyms
    first = torch.minimum(stated.subject_idx, stated.object_idx)
    second = torch.maximum(stated.subject_idx, stated.object_idx)
    passage_idx, member_idx = stated.memberships(num_phrases)
    is_fact = torch.isin(key, first * num_nodes + second)
    is_synonym = torch.isin(key, (synonyms.first_idx * num_nodes + synonyms.second_idx).cpu())
    is_member = torch.isin(key, member_idx * num_nodes + passage_idx + num_phrases)
    between_phrases = torch.where(is_fact, torch.where(is_synonym, 1, 0), 2)
    return torch.where(high < num_phrases, between_phrases, torch.where(is_member, 3, 4)), weight


def _degree_histogram(degrees: Tensor) -> Histogram:
    joined = degrees[degrees > 0].tolist()
    if not joined:
        return Histogram((), ())
    edges = [2.0**power for power in range(max(joined).bit_length() + 1)]
    counts = [0] * (len(edges) - 1)
    for degree in joined:
        counts[degree.bit_length() - 1] += 1
    return Histogram(tuple(edges), tuple(counts))


def _weight_histogram(weights: Float32[Tensor, " edges"]) -> Histogram:
    """20 bins between the least and the greatest weight; a bin of its own where these are the same.

    The bins are equally wide, or widen by a factor where the greatest weight is many times the least.
    """
    values = weights.double()
    least, most = float(values.min()), float(values.max())
    if least == most:
        return Histogram((least, most), (len(values),))
    if most / least > _WIDE:
        factor = math.log(most / least) / _WEIGHT_BINS
        edges = [least * math.exp(factor * number) for number in range(_WEIGHT_BINS)]
    else:
        edges = [least + (most - least) * number / _WEIGHT_BINS for number in range(_WEIGHT_BINS)]
    edges.append(most)
    place = torch.searchsorted(torch.tensor(edges[1:-1], dtype=torch.float64), values, right=True)
    counts = torch.bincount(place, minlength=_WEIGHT_BINS).tolist()
    return Histogram(tuple(edges), tuple(counts))
