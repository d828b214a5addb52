"""What is known about a batch of questions."""

from dataclasses import dataclass

from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.ops.ragged import Ragged


@dataclass(frozen=True, eq=False)
class ConsideredFacts:
    """The best facts of each question, best first.

    `scores` are on the seeding's own scale. `like` says which are like the question at all: the first ones of
    a row, since the scores of the others are lower.
    """

    idx: Int64[Tensor, "queries facts"]
    scores: Float32[Tensor, "queries facts"]
    like: Bool[Tensor, "queries facts"]

    def select(self, rows: Int64[Tensor, " selected"]) -> "ConsideredFacts":
        return ConsideredFacts(self.idx[rows], self.scores[rows], self.like[rows])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Facts like the questions, and which of them the fact filter kept; passages' cosines; phrases named.

    `links` holds the phrases of each question: no rows of it are filled for a seeding that wants none.
    """

    facts: ConsideredFacts
    kept: Bool[Tensor, "queries facts"]
    passage_scores: Float32[Tensor, "queries passages"]
    links: Ragged

    def select(self, rows: Int64[Tensor, " selected"]) -> "Evidence":
        return Evidence(
            self.facts.select(rows), self.kept[rows], self.passage_scores[rows], self.links.select(rows)
        )

    def start_from_facts(self, fact_ends: Ragged) -> Bool[Tensor, " queries"]:
        """The questions of which a kept fact joins or names a phrase; a sentence may name none."""
        return (self.kept & (fact_ends.lengths[self.facts.idx] > 0)).any(1)

    @property
    def linked(self) -> Bool[Tensor, " queries"]:
        """The questions that name a phrase."""
        return self.links.lengths > 0
