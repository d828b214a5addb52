"""Why a question got its passages, read off the tensors of its walk."""

from dataclasses import dataclass

from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.index import Index
from hipporag_torch.ops.topk import stable_topk
from hipporag_torch.retrievers.seeding import Evidence
from hipporag_torch.types import Trace, TracedFact, TracedPassage, TracedSeed

# Every passage seeds, most of them hardly: a trace names the strongest.
_MAX_PASSAGE_SEEDS = 10


@dataclass(frozen=True, eq=False)
class QuestionWalk:
    """One question's walk: where it restarted, where its mass came to lie, which passages were returned."""

    reset: Float32[Tensor, " nodes"]
    mass: Float32[Tensor, " nodes"]
    returned_idx: Int64[Tensor, " k"]
    damping: float


def trace_question(
    index: Index,
    evidence: Evidence,
    considered: Bool[Tensor, "queries facts"],
    row: int,
    walk: QuestionWalk | None,
) -> Trace:
    """The trace of question `row`, which has no walk on the dense routes."""
    facts = tuple(
        TracedFact(index.facts[fact], score, kept)
        for fact, score, kept, shown in zip(
            evidence.fact_idx[row].tolist(),
            evidence.fact_scores[row].tolist(),
            evidence.kept[row].tolist(),
            considered[row].tolist(),
            strict=True,
        )
        if shown
    )
    if walk is None:
        return Trace(facts=facts)
    return Trace(
        facts=facts,
        seeds=_seeds(index, walk.reset / walk.reset.sum()),
        passages=tuple(_passage(index, walk, passage_idx) for passage_idx in walk.returned_idx.tolist()),
    )


def _seeds(index: Index, share: Float32[Tensor, " nodes"]) -> tuple[TracedSeed, ...]:
    """Every phrase that seeds and the strongest passages, each kind by descending weight."""
    num_phrases = index.graph.num_phrases
    phrases = _strongest(share[:num_phrases], limit=num_phrases)
    passages = _strongest(share[num_phrases:], limit=_MAX_PASSAGE_SEEDS)
    return (
        *(TracedSeed("phrase", index.phrases[i], weight) for i, weight in phrases),
        *(TracedSeed("passage", index.passages[i].id, weight) for i, weight in passages),
    )


def _passage(index: Index, walk: QuestionWalk, passage_idx: int) -> TracedPassage:
    """What flowed into a passage in the walk's last step; the rest of its mass is its own seed's."""
    node = index.graph.num_phrases + passage_idx
    phrase_idx, share = index.graph.neighbours(node)
    inflow = walk.damping * share * walk.mass[phrase_idx]
    mass = float(walk.mass[node])
    through = [(index.phrases[int(phrase_idx[i])], flow) for i, flow in _strongest(inflow, limit=len(inflow))]
    return TracedPassage(
        index.passages[passage_idx].id, mass, max(0.0, mass - float(inflow.sum())), tuple(through)
    )


def _strongest(weights: Float32[Tensor, " items"], *, limit: int) -> list[tuple[int, float]]:
    """The (row, weight) of the largest positive weights, at most `limit`."""
    best = stable_topk(weights.unsqueeze(0), min(limit, int((weights > 0).sum())))
    return list(zip(best.idx[0].tolist(), best.scores[0].tolist(), strict=True))
