"""The seeds of HippoRAG 2, as its reference implementation weighs them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.ops.scores import ROUNDING, minmax
from hipporag_torch.ops.topk import stable_topk, table_topk
from hipporag_torch.retrievers.seeding.equal_ends import equal_ends
from hipporag_torch.retrievers.seeding.evidence import ConsideredFacts, Evidence
from hipporag_torch.retrievers.seeding.sources import SeedSource, passage_source


@dataclass(frozen=True, kw_only=True)
class ReferenceSeeding:
    """The seeds of HippoRAG 2 (arXiv 2502.14802, "Online Retrieval"), as its reference weighs them.

    Only facts with a positive cosine are considered. A phrase weighs the mean score of the kept facts that it
    is an end of (a fact about itself counts twice in it), divided by the number of passages that state the
    phrase; a fact's score is its cosine, min-max normalised over all facts. The `linking_top_k` heaviest
    phrases stay; of equal ones those of the better fact, and its subject before its object. Every passage
    weighs its cosine, min-max normalised over all passages, times `passage_weight`.
    """

    linking_top_k: int = 5
    passage_weight: float = 0.05

    def __post_init__(self) -> None:
        if self.linking_top_k < 1:
            raise ConfigError(
                f"seeding.linking_top_k must be at least 1, got {self.linking_top_k}; "
                "retriever=dense ranks without facts"
            )
        if not 0 < self.passage_weight < math.inf:
            raise ConfigError(f"seeding.passage_weight must be finite and above 0, got {self.passage_weight}")

    @property
    def num_facts(self) -> int:
        return self.linking_top_k

    @property
    def wants_links(self) -> bool:
        return False

    @property
    def start_exponent(self) -> float:
        return 1.0

    def consider(
        self, index: Index, questions: Sequence[str], to_fact: Float32[Tensor, "queries dim"]
    ) -> ConsideredFacts:
        best = table_topk(index.fact_emb, to_fact, self.num_facts)
        return ConsideredFacts(
            best.idx, minmax(best.scores, best.lowest, best.highest), best.scores > ROUNDING
        )

    def shown_scores(self, facts: ConsideredFacts) -> Float32[Tensor, "queries facts"]:
        return facts.scores

    def sources(self, index: Index, evidence: Evidence) -> tuple[SeedSource, ...]:
        """Facts, then passages; rows do not sum to 1."""
        phrase_idx, weight = self._phrases(index, evidence)
        passages = minmax(evidence.passage_scores) * self.passage_weight
        return (
            SeedSource("facts", phrase_idx, weight),
            passage_source(passages, num_phrases=index.graph.num_phrases),
        )

    def _phrases(
        self, index: Index, evidence: Evidence
    ) -> tuple[Int64[Tensor, "queries k"], Float32[Tensor, "queries k"]]:
        """The phrases that seed, each once, and their weights; rows are padded with weight 0."""
        ends, held = index.fact_ends.padded(evidence.facts.idx)
        held = (held & evidence.kept.unsqueeze(2)).flatten(1)
        score = evidence.facts.scores.unsqueeze(2).expand(ends.shape).flatten(1)
        ends = ends.flatten(1)
        same, first = equal_ends(ends, held)
        mean = (same.float() @ score.unsqueeze(2)).squeeze(2) / same.sum(2).clamp(min=1)
        weight = torch.where(first, mean / index.passages_per_phrase[ends], 0.0)
        best = stable_topk(weight, self.linking_top_k)
        return ends.gather(1, best.idx), best.scores
