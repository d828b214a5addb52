"""The edges of a graph with what they are made of."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.graph_construction import ReferenceGraphOptions
from hipporag_torch.index import Index

# Rows turned into Python objects at a time: some tens of MB.
_BATCH = 32_768


@dataclass(frozen=True)
class Edge:
    """An undirected edge from a phrase to a later phrase or to a passage, as rows among the nodes.

    weight: as in the graph. kinds: fact, synonym or both; or membership, or mention where the phrase stands
    in the passage's text but in nothing that it states.
    statements: how many statements have both ends. cosine: that of a synonym pair, else None.
    """

    source_idx: int
    target_idx: int
    weight: float
    kinds: tuple[str, ...]
    statements: int
    cosine: float | None


def edges_of(index: Index) -> Iterator[Edge]:
    """Every edge once, ascending by source and target."""
    adjacency, num_phrases = index.graph.adjacency, index.graph.num_phrases
    source, target, weight = adjacency.row.cpu(), adjacency.col.cpu().long(), adjacency.weight.cpu()
    once = source < target
    source, target, weight = source[once], target[once], weight[once]
    num_nodes = index.graph.num_nodes
    statement_key, statement_count = _statement_pairs(index)
    member_key = _memberships(index)
    is_member_key = torch.ones_like(member_key, dtype=torch.bool)
    synonym_key = index.synonyms.first_idx.cpu() * num_nodes + index.synonyms.second_idx.cpu()
    for start in range(0, len(source), _BATCH):
        part = slice(start, start + _BATCH)
        key = source[part] * num_nodes + target[part]
        count = _looked_up(key, statement_key, statement_count, 0)
        cosine = _looked_up(key, synonym_key, index.synonyms.cosine.cpu(), torch.nan)
        fact_part = _fact_weight(index) * count.double()
        # A synonym is what the graph's rules let through, so it is seen by what it adds to the facts.
        is_synonym = weight[part] != fact_part.float()
        is_member = _looked_up(key, member_key, is_member_key, False)
        columns = (
            source[part],
            target[part],
            weight[part],
            count,
            fact_part > 0,
            is_synonym,
            cosine,
            is_member,
        )
        for s, t, w, n, fact, synonym, c, member in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if t >= num_phrases:
                yield Edge(s, t, w, ("membership",) if member else ("mention",), 0, None)
            else:
                kinds = ("fact",) * fact + ("synonym",) * synonym
                yield Edge(s, t, w, kinds, n, c if synonym else None)


def node_names(index: Index) -> list[str]:
    """The names of the nodes, by row: `phrase:<phrase>` and `passage:<id>`."""
    phrases = [f"phrase:{phrase}" for phrase in index.phrases]
    return phrases + [f"passage:{passage.id}" for passage in index.passages]


def _fact_weight(index: Index) -> float:
    """What one statement adds to the edge between its ends."""
    options = index.graph_options
    return 2.0 if isinstance(options, ReferenceGraphOptions) else options.fact_weight


def _statement_pairs(index: Index) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """The keys of the pairs of phrases that statements join, ascending, and how many join each.

    A sentence joins each of its names with itself, which no edge does.
    """
    subject, object_ = index.statements.subject_idx.cpu(), index.statements.object_idx.cpu()
    key = torch.minimum(subject, object_) * index.graph.num_nodes + torch.maximum(subject, object_)
    return torch.unique(key, return_counts=True)


def _memberships(index: Index) -> Int64[Tensor, " pairs"]:
    """The keys of the pairs of a phrase and a passage that states it, ascending."""
    passage_idx, phrase_idx = index.statements.memberships(len(index.phrases))
    key = phrase_idx * index.graph.num_nodes + passage_idx + len(index.phrases)
    return torch.sort(key.cpu()).values


def _looked_up(
    key: Int64[Tensor, " edges"],
    known: Int64[Tensor, " pairs"],
    values: Int64[Tensor, " pairs"] | Float32[Tensor, " pairs"] | Bool[Tensor, " pairs"],
    otherwise: float,
) -> Tensor:
    """The value of each key among the ascending `known`, or `otherwise`."""
    if not len(known):
        return torch.full(key.shape, otherwise, dtype=values.dtype)
    place = torch.searchsorted(known, key).clamp(max=len(known) - 1)
    return torch.where(known[place] == key, values[place], otherwise)
