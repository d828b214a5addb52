"""Facts scored by how well they fit together with another fact about the same thing."""

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.ops.neighbours import FactNeighbours
from hipporag_torch.ops.topk import stable_topk

# So many of the best facts are paired with so many others each; chosen by experiment.
_BEST, _PARTNERS = 20, 200
# Pairs of vectors compared at once.
_PAIRS = 2**14
# Of two unit vectors that (nearly) cancel, the direction of the sum says nothing.
_LEAST_SUM_SQUARED = 0.02


def best_of_pairs(
    scores: Float32[Tensor, "queries facts"],
    fact_emb: Float32[Tensor, "facts dim"],
    neighbours: FactNeighbours,
) -> Float32[Tensor, "queries facts"]:
    """For each fact the largest of its score and those of its pairs with one of the question's best facts.

    A pair's score is that of the two vectors' normalised sum: (a + b) / √(2 + 2·cosine). Facts with the
    score −inf take no part.
    """
    best = stable_topk(scores, _BEST)
    query, place = (best.scores > -torch.inf).nonzero(as_tuple=True)
    fact = best.idx[query, place]
    pair, partner = neighbours.near(fact)
    pair, partner = _best_partners(scores, query, fact, pair, partner)
    query, fact = query[pair], fact[pair]
    pair_score = (scores[query, fact] + scores[query, partner]) / _sum_length(fact_emb, fact, partner)
    at = torch.cat([query * scores.shape[1] + fact, query * scores.shape[1] + partner])
    # A maximum does not depend on the order.
    raised = scores.flatten().scatter_reduce(0, at, pair_score.repeat(2), "amax")
    return raised.view_as(scores)


def _best_partners(
    scores: Float32[Tensor, "queries facts"],
    query: Int64[Tensor, " best"],
    fact: Int64[Tensor, " best"],
    pair: Int64[Tensor, " pairs"],
    partner: Int64[Tensor, " pairs"],
) -> tuple[Int64[Tensor, " kept"], Int64[Tensor, " kept"]]:
    """The `_PARTNERS` partners of each best fact that score most."""
    score = scores[query[pair], partner]
    real: Bool[Tensor, " pairs"] = (partner != fact[pair]) & (score > -torch.inf)
    pair, partner, score = pair[real], partner[real], score[real]
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(pair[order], stable=True)]
    pair, partner = pair[order], partner[order]
    start = torch.searchsorted(pair, pair)
    kept = torch.arange(len(pair), device=pair.device) - start < _PARTNERS
    return pair[kept], partner[kept]


def _sum_length(
    vectors: Float32[Tensor, "facts dim"], first: Int64[Tensor, " pairs"], second: Int64[Tensor, " pairs"]
) -> Float32[Tensor, " pairs"]:
    cosine = torch.cat(
        [
            (vectors[one] * vectors[other]).sum(1)
            for one, other in zip(first.split(_PAIRS), second.split(_PAIRS), strict=True)
        ]
    )
    return (2 + 2 * cosine).clamp(min=_LEAST_SUM_SQUARED).sqrt()
