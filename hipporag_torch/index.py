"""The index: everything that retrieval reads, of one moment. Frozen; a change makes a new one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.graph import Graph
from hipporag_torch.graph_construction import AnyGraphOptions, Statements
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Passage, Triple


@dataclass(frozen=True)
class Vocabulary:
    """The phrases and facts that a set of extractions states, and who states what.

    Rows are canonical: phrases ascend by text, facts by (subject, predicate, object), statements by
    passage and fact. So the same passages give the same rows, whatever their history.
    """

    phrases: tuple[str, ...]
    facts: tuple[Triple, ...]
    statements: Statements

    @staticmethod
    def of(extractions: Sequence[Extraction], text: TextOptions) -> "Vocabulary":
        """Normalise every triple of `extractions`, one per passage in the order of the passages.

        A triple that one passage repeats word for word counts once; one without a key, not at all.
        """
        stated = [
            (passage_idx, fact)
            for passage_idx, extraction in enumerate(extractions)
            for triple in dict.fromkeys(extraction.triples)
            if (fact := text.fact(triple)) is not None
        ]
        facts = sorted({fact for _, fact in stated})
        phrases = sorted({end for fact in facts for end in (fact.subject, fact.object)})
        fact_row = {fact: row for row, fact in enumerate(facts)}
        phrase_row = {phrase: row for row, phrase in enumerate(phrases)}
        rows = sorted((passage_idx, fact_row[fact]) for passage_idx, fact in stated)
        passage_idx, fact_idx = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2).unbind(1)
        ends = [(phrase_row[fact.subject], phrase_row[fact.object]) for fact in facts]
        end_idx = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2)[fact_idx]
        statements = Statements(passage_idx, fact_idx, end_idx[:, 0], end_idx[:, 1])
        return Vocabulary(tuple(phrases), tuple(facts), statements)


@dataclass(frozen=True, eq=False)
class Index:
    """Passages, what was extracted from them, their vectors and their graph.

    Row i of a table belongs to entry i of its tuple; passages ascend by id. Vectors have unit length,
    or are zero. `embedder`, `text` and `graph_options` are what it was built with: its identity.
    """

    embedder: EmbedderIdentity
    text: TextOptions
    graph_options: AnyGraphOptions
    passages: tuple[Passage, ...]
    extractions: tuple[Extraction, ...]
    phrases: tuple[str, ...]
    facts: tuple[Triple, ...]
    statements: Statements
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
    def fact_ends(self) -> Int64[Tensor, "facts 2"]:
        """The phrase rows of each fact's subject and object."""
        row = {phrase: row for row, phrase in enumerate(self.phrases)}
        ends = [(row[fact.subject], row[fact.object]) for fact in self.facts]
        return torch.tensor(ends, dtype=torch.int64, device=self.fact_emb.device).reshape(-1, 2)

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
