"""HippoRAG 2's retrieval: facts → recognition memory → seeds → personalized PageRank → passages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.errors import BackendError
from hipporag_torch.fact_filters import KeepAllFacts
from hipporag_torch.index import Index
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.ops.scores import minmax
from hipporag_torch.ops.topk import dot_scores, stable_topk, table_topk
from hipporag_torch.protocols import Embedder, FactFilter, Reads
from hipporag_torch.retrievers.questions import (
    check_batch_size,
    check_call,
    check_embedder,
    embed_questions,
    nothing_found,
    rankings_of,
)
from hipporag_torch.retrievers.seeding import Evidence, ReferenceSeeding, Seeding
from hipporag_torch.retrievers.trace import QuestionWalk, trace_question
from hipporag_torch.types import FilterDecision, Ranking, Route

# A product of two unit vectors that is really 0 comes out as less than this, differently in each batch.
_ROUNDING = 1e-6


class HippoRAGRetriever:
    """Ranks passages by the mass that a walk from a question's facts and passages leaves on them.

    Questions without a fact to start from take the dense order; each ranking's `route` says which way
    it went and why. `batch_size` questions are scored and walked at a time, which bounds the memory.
    Only facts with a positive cosine are considered: a question that is like none has none.
    """

    reads: ClassVar[Reads] = "graph"

    def __init__(
        self,
        *,
        index: Index,
        embedder: Embedder,
        seeding: Seeding | None = None,
        fact_filter: FactFilter | None = None,
        ppr: PPROptions | None = None,
        batch_size: int = 32,
    ) -> None:
        check_embedder(index, embedder)
        check_batch_size(batch_size)
        self._index = index
        self._embedder = embedder
        self._seeding = seeding or ReferenceSeeding()
        self._fact_filter = fact_filter or KeepAllFacts()
        self._ppr = ppr or PPROptions()
        self._batch_size = batch_size

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question; with `trace`, why its passages were found."""
        check_call(questions, top_k)
        if not self._index.passages:
            return nothing_found(questions, "none:empty_index")
        if not questions:
            return []
        device = self._index.passage_emb.device
        to_fact, to_passage = embed_questions(
            self._embedder, questions, ["question_to_fact", "question_to_passage"]
        )
        rankings: list[Ranking] = []
        for start in range(0, len(questions), self._batch_size):
            block = slice(start, start + self._batch_size)
            rankings += self._retrieve_block(
                questions[block], to_fact[block].to(device), to_passage[block].to(device), top_k, trace
            )
        return rankings

    def _retrieve_block(
        self,
        questions: Sequence[str],
        to_fact: Float32[Tensor, "queries dim"],
        to_passage: Float32[Tensor, "queries dim"],
        top_k: int,
        trace: bool,
    ) -> list[Ranking]:
        index = self._index
        passage_scores = dot_scores(index.passage_emb, to_passage)
        evidence, considered = self._consider(to_fact, passage_scores)
        evidence, routes, decisions = self._recognise(questions, evidence, considered)
        best = stable_topk(passage_scores, top_k)
        walks: dict[int, QuestionWalk] = {}
        walked = [row for row, route in enumerate(routes) if route == "graph"]
        if walked:
            rows = torch.tensor(walked, device=passage_scores.device)
            reset = self._seeding.reset(index, _rows(evidence, rows))
            mass = personalized_pagerank(index.graph.walk, reset, self._ppr)
            found = stable_topk(mass[:, index.graph.num_phrases :].contiguous(), top_k)
            best.idx[rows], best.scores[rows] = found.idx, found.scores
            walks = {
                row: QuestionWalk(reset[i], mass[i], found.idx[i], self._ppr.damping)
                for i, row in enumerate(walked)
            }
        traces = [
            trace_question(index, evidence, considered, row, walks.get(row)) if trace else None
            for row in range(len(questions))
        ]
        rankings = rankings_of(index, questions, best, routes, traces)
        return [
            replace(ranking, reason=decision.error, usage=decision.usage, dropped=decision.dropped)
            for ranking, decision in zip(rankings, decisions, strict=True)
        ]

    def _consider(
        self, to_fact: Float32[Tensor, "queries dim"], passage_scores: Float32[Tensor, "queries passages"]
    ) -> tuple[Evidence, Bool[Tensor, "queries facts"]]:
        """The best facts of each question, and which of them are like it at all."""
        best = table_topk(self._index.fact_emb, to_fact, self._seeding.num_facts)
        scores = minmax(best.scores, best.lowest, best.highest)
        considered = best.scores > _ROUNDING
        return Evidence(best.idx, scores, considered, passage_scores), considered

    def _recognise(
        self, questions: Sequence[str], evidence: Evidence, considered: Bool[Tensor, "queries facts"]
    ) -> tuple[Evidence, list[Route], list[FilterDecision]]:
        """The evidence with the facts that the filter keeps, and each question's route and decision."""
        routes: list[Route] = ["dense:no_facts"] * len(questions)
        taken = [FilterDecision(kept=())] * len(questions)
        shown = [
            fact_idx[mask].tolist()
            for fact_idx, mask in zip(evidence.fact_idx.cpu(), considered.cpu(), strict=True)
        ]
        asked = [row for row, facts in enumerate(shown) if facts]
        kept = torch.zeros(considered.shape, dtype=torch.bool)
        if asked:
            decisions = self._fact_filter.select(
                [questions[row] for row in asked],
                [[self._index.facts[i] for i in shown[row]] for row in asked],
            )
            if len(decisions) != len(asked):
                raise BackendError(
                    f"the fact filter gave {len(decisions)} decisions for {len(asked)} questions; "
                    "expected one for each, in order"
                )
            for row, decision in zip(asked, decisions, strict=True):
                routes[row], taken[row] = _route(decision, len(shown[row])), decision
                # The facts shown are the first ones of the row: scores descend.
                kept[row, list(decision.kept)] = routes[row] == "graph"
        return replace(evidence, kept=kept.to(considered.device)), routes, taken


def _route(decision: FilterDecision, num_shown: int) -> Route:
    if any(not 0 <= choice < num_shown for choice in decision.kept):
        raise BackendError(
            f"the fact filter chose {decision.kept} among {num_shown} facts; "
            "expected rows into the facts that it was shown"
        )
    if decision.error:
        return "dense:filter_error"
    return "graph" if decision.kept else "dense:filter_kept_none"


def _rows(evidence: Evidence, rows: Tensor) -> Evidence:
    return Evidence(
        evidence.fact_idx[rows],
        evidence.fact_scores[rows],
        evidence.kept[rows],
        evidence.passage_scores[rows],
    )
