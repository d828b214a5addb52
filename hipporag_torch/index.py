"""The index: everything that retrieval reads, of one moment. Frozen; a change makes a new one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.extractions import Extractions
from hipporag_torch.graph import Graph
from hipporag_torch.graph_construction import AnyGraphOptions, Statements
from hipporag_torch.lexicon import Lexicon
from hipporag_torch.ops.bm25 import BM25
from hipporag_torch.ops.matching import PhraseMatcher
from hipporag_torch.ops.neighbours import FactNeighbours
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Fact, Passage
from hipporag_torch.vocabulary import Vocabulary

__all__ = ["Extractions", "Index", "Vocabulary"]


@dataclass(frozen=True, eq=False)
class Index:
    """Passages, what was extracted from them, their vectors and their graph.

    Row i of a table belongs to entry i of its tuple; passages ascend by id. Vectors have unit length,
    or are zero. `embedder`, `text` and `graph_options` are what it was built with: its identity.
    `failed` holds the ids of the passages whose extraction failed, and whether trying again is of no use.
    """

    embedder: EmbedderIdentity
    text: TextOptions
    graph_options: AnyGraphOptions
    passages: tuple[Passage, ...]
    extractions: Extractions
    failed: Mapping[str, bool]
    phrases: tuple[str, ...]
    facts: tuple[Fact, ...]
    statements: Statements
    lexicon: Lexicon
    passage_emb: Float32[Tensor, "passages dim"]
    phrase_emb: Float32[Tensor, "phrases dim"]
    fact_emb: Float32[Tensor, "facts dim"]
    synonyms: Pairs
    graph: Graph

    @cached_property
    def passage_row(self) -> dict[str, int]:
        """Passage id → row."""
        return {passage.id: row for row, passage in enumerate(self.passages)}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The phrases, the facts, who states them and their words, in one record; on the CPU."""
        return Vocabulary(self.phrases, self.facts, self.statements, self.lexicon)

    @cached_property
    def fact_ends(self) -> Ragged:
        """The phrase rows of each fact: its subject and object, or a sentence's distinct names, ascending."""
        return self.vocabulary.fact_ends.to(self.fact_emb.device)

    @cached_property
    def named(self) -> Bool[Tensor, " phrases"]:
        """Which phrases are mostly written as names."""
        return self.vocabulary.named.to(self.fact_emb.device)

    @cached_property
    def matcher(self) -> PhraseMatcher:
        """Finds phrases by their words."""
        return PhraseMatcher.of(self.lexicon.phrase_tokens.to(self.fact_emb.device), self.named)

    @cached_property
    def fact_neighbours(self) -> FactNeighbours:
        """Which facts share a phrase, or a synonym of one."""
        return FactNeighbours.of(self.fact_ends, self.synonyms, num_phrases=len(self.phrases))

    @cached_property
    def fact_bm25(self) -> BM25:
        """The words of the facts, weighed."""
        return BM25.of(self.lexicon.fact_tokens.to(self.fact_emb.device))

    @cached_property
    def passages_per_phrase(self) -> Float32[Tensor, " phrases"]:
        """How many passages state each phrase."""
        _, phrase_idx = self.statements.memberships(len(self.phrases))
        counts = torch.bincount(phrase_idx, minlength=len(self.phrases))
        return counts.float().to(self.fact_emb.device)

    def to(self, device: torch.device | str) -> "Index":
        """The same index with its vectors and its graph on `device`."""
        if self.passage_emb.device == torch.device(device):
            return self
        return replace(
            self,
            passage_emb=self.passage_emb.to(device),
            phrase_emb=self.phrase_emb.to(device),
            fact_emb=self.fact_emb.to(device),
            graph=self.graph.to(device),
        )
