"""Seeds from three sources in stated shares: what is stated, what the question names, what reads like it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.lexical import lexical_tokens, token_rows
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.ops.scores import ROUNDING, standardised
from hipporag_torch.ops.topk import dot_scores, stable_topk
from hipporag_torch.retrievers.seeding.equal_ends import summed_over_phrases
from hipporag_torch.retrievers.seeding.evidence import ConsideredFacts, Evidence
from hipporag_torch.retrievers.seeding.fact_pairs import best_of_pairs
from hipporag_torch.retrievers.seeding.sources import SeedSource, passage_source

# Scores of facts held at once, at most.
_SCORES = 8_000_000


@dataclass(frozen=True, kw_only=True)
class BlendedSeeding:
    """Facts, the question's entities and passages, each a distribution over nodes (docs/blended.md).

    facts: every fact is scored by its cosine, standardised over all facts, plus `bm25_weight` times its
        BM25 score, standardised likewise; facts with neither a positive cosine nor a shared word are not
        considered. A softmax (`fact_temperature`) over those of the `num_facts` best that the fact filter
        kept gives each a weight, which every phrase that it joins or names gets, divided by the number of
        passages that hold the phrase.
    entities: the phrases that the question names, each 1 / the number of passages that hold it.
    passages: a softmax (`passage_temperature`) over all passages' cosines, standardised.

    Each is scaled to sum to its share (`share_facts`, `share_entities`, `share_passages`, scaled to sum to 1
    themselves). Where there is nothing to one of facts and entities, the other gets its share as well. A
    `share_entities` of 0 asks for no entities at all.

    fact_pairs: whether a fact may score by how well it fits together with one of the 20 best: two facts that
        share a phrase, or a synonym of one, both score (a + b) / |x + y|, if that is more; a and b are
        their own scores, x and y their unit vectors.
    start_exponent: above 0 and at most 1; e in the power mean of what each source gives to a passage's mass,
        which ranks the passages. 1 ranks by the mass of one walk from all sources; less takes a walk for
        each, and favours passages that several of them reach.
    """

    num_facts: int = 10
    bm25_weight: float = 0.2
    fact_temperature: float = 0.3
    passage_temperature: float = 0.2
    share_facts: float = 1 / 3
    share_entities: float = 1 / 3
    share_passages: float = 1 / 3
    fact_pairs: bool = False
    start_exponent: float = 0.5

    def __post_init__(self) -> None:
        if self.num_facts < 1:
            raise ConfigError(
                f"seeding.num_facts must be at least 1, got {self.num_facts}; "
                "share_facts=0 seeds without them where the question names a phrase"
            )
        for name in ("fact_temperature", "passage_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"seeding.{name} must be finite and above 0, got {getattr(self, name)}")
        for name in ("bm25_weight", "share_facts", "share_entities", "share_passages"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"seeding.{name} must be finite and at least 0, got {getattr(self, name)}")
        if not 0 < self.start_exponent <= 1:
            raise ConfigError(
                f"seeding.start_exponent must be above 0 and at most 1, got {self.start_exponent}"
            )
        if not 0 < self._sum_of_shares < math.inf:
            raise ConfigError(
                "seeding.share_facts, share_entities and share_passages must have a finite sum above 0, "
                f"got {self._sum_of_shares}"
            )

    @property
    def wants_links(self) -> bool:
        return self.share_entities > 0

    def consider(
        self,
        index: Index,
        questions: Sequence[str],
        to_fact: Float32[Tensor, "queries dim"],
        *,
        scores_at_once: int = _SCORES,
    ) -> ConsideredFacts:
        """The best facts of each question; `scores_at_once` bounds the memory, and changes nothing else."""
        at_once = max(1, scores_at_once // max(1, len(index.facts)))
        blocks = [slice(start, start + at_once) for start in range(0, len(questions), at_once)]
        best = [
            stable_topk(self._fact_scores(index, questions[block], to_fact[block]), self.num_facts)
            for block in blocks
        ]
        scores = torch.cat([found.scores for found in best])
        return ConsideredFacts(torch.cat([found.idx for found in best]), scores, scores > -torch.inf)

    def shown_scores(self, facts: ConsideredFacts) -> Float32[Tensor, "queries facts"]:
        return self._softmax(facts.scores, facts.like)

    def sources(self, index: Index, evidence: Evidence) -> tuple[SeedSource, ...]:
        """Facts, entities, passages; together a row sums to 1."""
        fact_ends, from_facts = self._from_facts(index, evidence)
        named, from_entities = _from_entities(index, evidence.links)
        with_facts, with_entities = from_facts.sum(1) > 0, from_entities.sum(1) > 0
        facts, entities = self.share_facts, self.share_entities
        share_facts = torch.where(with_entities, facts, facts + entities) / self._sum_of_shares
        share_entities = torch.where(with_facts, entities, facts + entities) / self._sum_of_shares
        passages = torch.softmax(standardised(evidence.passage_scores) / self.passage_temperature, 1)
        return (
            SeedSource("facts", fact_ends, from_facts * share_facts.unsqueeze(1)),
            SeedSource("entities", named, from_entities * share_entities.unsqueeze(1)),
            passage_source(
                passages * (self.share_passages / self._sum_of_shares), num_phrases=index.graph.num_phrases
            ),
        )

    @property
    def _sum_of_shares(self) -> float:
        return self.share_facts + self.share_entities + self.share_passages

    def _fact_scores(
        self, index: Index, questions: Sequence[str], to_fact: Float32[Tensor, "queries dim"]
    ) -> Float32[Tensor, "queries facts"]:
        """The score of every fact; −inf for one that is not like the question at all."""
        cosine = dot_scores(index.fact_emb, to_fact)
        like = cosine > ROUNDING
        scores = standardised(cosine)
        if self.bm25_weight:
            tokens = token_rows(questions, lexical_tokens).to(to_fact.device)
            bm25 = index.fact_bm25.scores(tokens)
            like |= bm25 > 0
            scores.add_(standardised(bm25), alpha=self.bm25_weight)
        scores = torch.where(like, scores, -torch.inf)
        if not self.fact_pairs:
            return scores
        return best_of_pairs(scores, index.fact_emb, index.fact_neighbours)

    def _softmax(
        self, scores: Float32[Tensor, "queries facts"], among: Bool[Tensor, "queries facts"]
    ) -> Float32[Tensor, "queries facts"]:
        """Over the facts `among`; 0 for the others."""
        weight = torch.softmax((scores / self.fact_temperature).masked_fill(~among, -torch.inf), 1)
        return torch.where(among, weight, 0.0)

    def _from_facts(
        self, index: Index, evidence: Evidence
    ) -> tuple[Int64[Tensor, "queries ends"], Float32[Tensor, "queries ends"]]:
        """The phrases of the facts kept, each once, and their weights, which sum to 1 or are all 0."""
        ends, held = index.fact_ends.padded(evidence.facts.idx)
        weight = self._softmax(evidence.facts.scores, evidence.kept)
        shape = ends.shape
        ends, held = ends.flatten(1), (held & evidence.kept.unsqueeze(2)).flatten(1)
        weight = weight.unsqueeze(2).expand(shape).flatten(1)
        weight = torch.where(held, weight / index.passages_per_phrase[ends], 0.0)
        return ends, _sum_to_1(summed_over_phrases(ends, held, weight))


def _from_entities(
    index: Index, links: Ragged
) -> tuple[Int64[Tensor, "queries named"], Float32[Tensor, "queries named"]]:
    """The phrases that each question names, and their weights, which sum to 1 or are all 0."""
    named, held = links.padded(torch.arange(links.num_rows, device=links.values.device))
    return named, _sum_to_1(torch.where(held, 1 / index.passages_per_phrase[named], 0.0))


def _sum_to_1(weight: Float32[Tensor, "queries k"]) -> Float32[Tensor, "queries k"]:
    total = weight.sum(1, keepdim=True)
    return torch.where(total > 0, weight / total, 0.0)
