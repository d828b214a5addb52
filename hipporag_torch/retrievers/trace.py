"""Why a question got its passages, read off the tensors of its walk."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.index import Index
from hipporag_torch.ops.topk import stable_topk
from hipporag_torch.retrievers.seeding import Evidence, SeedSource, reset_of
from hipporag_torch.types import SourceName, SourceShares, Trace, TracedFact, TracedPassage, TracedSeed

# Every passage seeds, most of them hardly: a trace names the strongest.
_MAX_PASSAGE_SEEDS = 10


@dataclass(frozen=True, eq=False)
class QuestionWalk:
    """One question's walk: where it restarted, where its mass came to lie, which passages were returned.

    `sources` are the question's own rows of the sources, `source_mass` what each gave the returned passages.
    """

    sources: tuple[SeedSource, ...]
    mass: Float32[Tensor, " nodes"]
    returned_idx: Int64[Tensor, " k"]
    source_mass: Float32[Tensor, "sources k"]
    damping: float

    @property
    def names(self) -> tuple[SourceName, ...]:
        return tuple(source.name for source in self.sources)


def trace_question(
    index: Index,
    evidence: Evidence,
    shown_scores: Float32[Tensor, "queries facts"],
    row: int,
    walk: QuestionWalk | None,
    *,
    wants_links: bool,
) -> Trace:
    """The trace of question `row`, which has no walk on the dense routes.

    `shown_scores` and `wants_links` are the seeding's.
    """
    facts = _facts(index, evidence, shown_scores, row)
    if walk is None:
        return Trace(facts=facts)
    links = evidence.links
    linked = links.values[links.row_ptr[row] : links.row_ptr[row + 1]].tolist()
    return Trace(
        facts=facts,
        seeds=_seeds(index, walk),
        passages=tuple(_passage(index, walk, place) for place in range(len(walk.returned_idx))),
        linked=tuple(index.phrases[i] for i in linked),
        entities_from="question" if linked else "facts" if wants_links else "",
    )


def _facts(
    index: Index, evidence: Evidence, shown_scores: Float32[Tensor, "queries facts"], row: int
) -> tuple[TracedFact, ...]:
    """Those that are like the question, best first."""
    fact_idx = evidence.facts.idx[row][evidence.facts.like[row]]
    ends = index.fact_ends.select(fact_idx)
    phrase_idx = ends.values.tolist()
    return tuple(
        TracedFact(
            index.facts[fact], score, kept, tuple(dict.fromkeys(index.phrases[i] for i in phrase_idx[a:b]))
        )
        for fact, score, kept, (a, b) in zip(
            fact_idx.tolist(),
            shown_scores[row].tolist(),
            evidence.kept[row].tolist(),
            pairwise(ends.row_ptr.tolist()),
            # Those that are like it come first.
            strict=False,
        )
    )


def _seeds(index: Index, walk: QuestionWalk) -> tuple[TracedSeed, ...]:
    """Every phrase that seeds and the strongest passages, each kind by descending weight."""
    num_phrases, num_nodes = index.graph.num_phrases, index.graph.num_nodes
    share = torch.cat([reset_of([source], num_nodes=num_nodes) for source in walk.sources])
    share = share / share.sum()
    weight = share.sum(0)
    phrases = _strongest(weight[:num_phrases], limit=num_phrases)
    passages = _strongest(weight[num_phrases:], limit=_MAX_PASSAGE_SEEDS)
    return (
        *(TracedSeed("phrase", index.phrases[i], w, _given(walk.names, share[:, i])) for i, w in phrases),
        *(
            TracedSeed("passage", index.passages[i].id, w, _given(walk.names, share[:, num_phrases + i]))
            for i, w in passages
        ),
    )


def _passage(index: Index, walk: QuestionWalk, place: int) -> TracedPassage:
    """What flowed into a passage in the walk's last step; the rest of its mass is its own seed's."""
    passage_idx = int(walk.returned_idx[place])
    node = index.graph.num_phrases + passage_idx
    phrase_idx, share = index.graph.neighbours(node)
    inflow = walk.damping * share * walk.mass[phrase_idx]
    mass = float(walk.mass[node])
    through = [(index.phrases[int(phrase_idx[i])], flow) for i, flow in _strongest(inflow, limit=len(inflow))]
    return TracedPassage(
        index.passages[passage_idx].id,
        mass,
        max(0.0, mass - float(inflow.sum())),
        tuple(through),
        _given(walk.names, walk.source_mass[:, place]),
    )


def _given(names: Sequence[SourceName], amounts: Float32[Tensor, " sources"]) -> SourceShares:
    return tuple((name, amount) for name, amount in zip(names, amounts.tolist(), strict=True) if amount > 0)


def _strongest(weights: Float32[Tensor, " items"], *, limit: int) -> list[tuple[int, float]]:
    """The (row, weight) of the largest positive weights, at most `limit`."""
    best = stable_topk(weights.unsqueeze(0), min(limit, int((weights > 0).sum())))
    return list(zip(best.idx[0].tolist(), best.scores[0].tolist(), strict=True))
