"""Where the walk restarts: from evidence about a question to a weight for every node."""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.ops.scores import minmax
from hipporag_torch.ops.topk import stable_topk


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known about a batch of questions.

    `fact_idx` are the facts considered, best first; `fact_scores` their cosines min-max normalised over
    all facts, in [0, 1]; `kept` those that the fact filter let pass. `passage_scores` are cosines.
    """

    fact_idx: Int64[Tensor, "queries facts"]
    fact_scores: Float32[Tensor, "queries facts"]
    kept: Bool[Tensor, "queries facts"]
    passage_scores: Float32[Tensor, "queries passages"]


class Seeding(Protocol):
    """Evidence → reset weights."""

    @property
    def num_facts(self) -> int:
        """How many facts to consider for each question."""
        ...

    def reset(self, index: Index, evidence: Evidence) -> Float32[Tensor, "queries nodes"]:
        """Not negative; the sum of a row is positive if a fact was kept. Rows need not sum to 1."""
        ...


@dataclass(frozen=True, kw_only=True)
class ReferenceSeeding:
    """The seeds of HippoRAG 2 (arXiv 2502.14802, "Online Retrieval"), as its reference weighs them.

    A phrase weighs the mean score of the kept facts that it is an end of (a fact about itself counts
    twice in it), divided by the number of passages that state the phrase. The `linking_top_k` heaviest
    stay; of equal ones those of the better fact, and its subject before its object. Every passage weighs
    its cosine, min-max normalised over all passages, times `passage_weight`.
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

    def reset(self, index: Index, evidence: Evidence) -> Float32[Tensor, "queries nodes"]:
        phrase_idx, weight = self._phrases(index, evidence)
        # Nodes outermost in memory, as PageRank wants them.
        reset = evidence.passage_scores.new_zeros(index.graph.num_nodes, len(phrase_idx)).T
        reset.scatter_add_(1, phrase_idx, weight)
        reset[:, index.graph.num_phrases :] = minmax(evidence.passage_scores) * self.passage_weight
        return reset

    def _phrases(
        self, index: Index, evidence: Evidence
    ) -> tuple[Int64[Tensor, "queries k"], Float32[Tensor, "queries k"]]:
        """The phrases that seed, each once, and their weights; rows are padded with weight 0.

        Sums run over (ends × ends) comparisons of a few numbers, which no device adds up out of order.
        """
        ends = index.fact_ends[evidence.fact_idx].flatten(1)
        kept = evidence.kept.repeat_interleave(2, 1)
        score = evidence.fact_scores.repeat_interleave(2, 1)
        same = (ends.unsqueeze(2) == ends.unsqueeze(1)) & kept.unsqueeze(2) & kept.unsqueeze(1)
        mean = (same.float() @ score.unsqueeze(2)).squeeze(2) / same.sum(2).clamp(min=1)
        first = kept & ~same.tril(-1).any(2)
        weight = torch.where(first, mean / index.passages_per_phrase[ends], 0.0)
        best = stable_topk(weight, self.linking_top_k)
        return ends.gather(1, best.idx), best.scores
