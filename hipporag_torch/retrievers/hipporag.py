"""HippoRAG 2's retrieval: facts → recognition memory → seeds → personalized PageRank → passages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.errors import BackendError
from hipporag_torch.fact_filters import KeepAllFacts
from hipporag_torch.index import Index
from hipporag_torch.linkers import Linker, Links, NgramLinker
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.ops.topk import TopK, dot_scores, stable_topk
from hipporag_torch.protocols import Embedder, FactFilter, Reads
from hipporag_torch.retrievers.attribution import power_mean, source_masses
from hipporag_torch.retrievers.questions import (
    check_batch_size,
    check_call,
    check_embedder,
    nothing_found,
    question_blocks,
    rankings_of,
)
from hipporag_torch.retrievers.seeding import (
    BlendedSeeding,
    ConsideredFacts,
    Evidence,
    Seeding,
    SeedSource,
    reset_of,
)
from hipporag_torch.retrievers.trace import QuestionWalk, trace_question
from hipporag_torch.types import FilterDecision, Ranking, Route, Trace, walked

# Without a fact to start from: the route of a question that names a phrase, and of another.
_NO_FACTS: tuple[Route, Route] = ("graph:no_facts", "dense:no_facts")
_KEPT_NONE: tuple[Route, Route] = ("graph:filter_kept_none", "dense:filter_kept_none")
_FILTER_ERROR: tuple[Route, Route] = ("graph:filter_error", "dense:filter_error")


class HippoRAGRetriever:
    """Ranks passages by the mass that a walk from what the question calls up leaves on them.

    Questions that call up neither a fact nor a phrase take the dense order; each ranking's `route` says which
    way it went and why. `batch_size` questions are scored and walked at a time, which bounds the memory.
    Only facts that are like the question at all are considered. The linker is asked where the seeding wants
    to know which phrases a question names.
    """

    reads: ClassVar[Reads] = "graph"

    def __init__(
        self,
        *,
        index: Index,
        embedder: Embedder,
        seeding: Seeding | None = None,
        linker: Linker | None = None,
        fact_filter: FactFilter | None = None,
        ppr: PPROptions | None = None,
        batch_size: int = 32,
    ) -> None:
        check_embedder(index, embedder)
        check_batch_size(batch_size)
        self._index = index
        self._embedder = embedder
        self._seeding = seeding or BlendedSeeding()
        self._linker = linker or NgramLinker()
        self._fact_filter = fact_filter or KeepAllFacts()
        self._ppr = ppr or PPROptions()
        self._batch_size = batch_size

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question; with `trace`, why its passages were found."""
        check_call(questions, top_k)
        if not self._index.passages:
            return nothing_found(questions, "none:empty_index")
        rankings: list[Ranking] = []
        for block, (to_fact, to_passage) in question_blocks(
            self._index,
            self._embedder,
            questions,
            ["question_to_fact", "question_to_passage"],
            self._batch_size,
        ):
            rankings += self._retrieve_block(block, to_fact, to_passage, top_k, trace)
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
        facts = self._seeding.consider(index, questions, to_fact)
        links = self._link(questions)
        decisions = self._recognise(questions, facts)
        kept = _kept(decisions, facts)
        evidence = Evidence(facts, kept, passage_scores, links.phrase_idx)
        routes = _routes(decisions, evidence, index.fact_ends)
        best = stable_topk(passage_scores, top_k)
        walks = self._walk(evidence, routes, best, trace=trace)
        traces = self._traces(evidence, walks) if trace else None
        rankings = rankings_of(index, questions, best, routes, traces)
        return [
            replace(
                ranking,
                reason="; ".join(filter(None, (decision.error, link_error and f"linker: {link_error}"))),
                usage=decision.usage + usage,
                dropped=dict(Counter(decision.dropped) + Counter(dropped)),
            )
            for ranking, decision, link_error, usage, dropped in zip(
                rankings,
                decisions,
                links.errors,
                links.usage,
                links.dropped or [{}] * len(questions),
                strict=True,
            )
        ]

    def _traces(self, evidence: Evidence, walks: Mapping[int, QuestionWalk]) -> list[Trace]:
        shown = self._seeding.shown_scores(evidence.facts)
        return [
            trace_question(
                self._index, evidence, shown, row, walks.get(row), wants_links=self._seeding.wants_links
            )
            for row in range(len(shown))
        ]

    def _link(self, questions: Sequence[str]) -> Links:
        """The phrases that the questions name, where they play a part and there are any."""
        index = self._index
        if not self._seeding.wants_links or not index.phrases:
            return Links.of(Ragged.of([[]] * len(questions)).to(index.passage_emb.device))
        links = self._linker.link(index, self._embedder, questions)
        if not len(questions) == links.phrase_idx.num_rows == len(links.errors) == len(links.usage):
            raise BackendError(
                f"the linker gave {links.phrase_idx.num_rows} rows for {len(questions)} questions; "
                "expected a row, an error and a usage for each, in order"
            )
        return links

    def _recognise(self, questions: Sequence[str], facts: ConsideredFacts) -> list[FilterDecision]:
        """What the filter says of each question's facts; of one without facts it is not asked."""
        shown = [idx[like].tolist() for idx, like in zip(facts.idx.cpu(), facts.like.cpu(), strict=True)]
        decisions = [FilterDecision(kept=())] * len(questions)
        asked = [row for row, rows in enumerate(shown) if rows]
        if not asked:
            return decisions
        given = self._fact_filter.select(
            [questions[row] for row in asked], [[self._index.facts[i] for i in shown[row]] for row in asked]
        )
        if len(given) != len(asked):
            raise BackendError(
                f"the fact filter gave {len(given)} decisions for {len(asked)} questions; "
                "expected one for each, in order"
            )
        for row, decision in zip(asked, given, strict=True):
            if any(not 0 <= choice < len(shown[row]) for choice in decision.kept):
                raise BackendError(
                    f"the fact filter chose {decision.kept} among {len(shown[row])} facts; "
                    "expected rows into the facts that it was shown"
                )
            decisions[row] = decision
        return decisions

    def _walk(
        self, evidence: Evidence, routes: Sequence[Route], best: TopK, *, trace: bool
    ) -> dict[int, QuestionWalk]:
        """Put the passages that walks lead to into `best`; the walks by their rows, to be traced."""
        walking = [row for row, route in enumerate(routes) if walked(route)]
        if not walking:
            return {}
        rows = torch.tensor(walking, device=best.idx.device)
        sources = self._seeding.sources(self._index, evidence.select(rows))
        scores, mass, source_mass = self._masses(sources, trace=trace)
        found = stable_topk(scores, best.idx.shape[1])
        best.idx[rows], best.scores[rows] = found.idx, found.scores
        if mass is None or source_mass is None:
            return {}
        of_found = source_mass.gather(2, found.idx.expand(len(sources), -1, -1))
        return {
            row: QuestionWalk(
                tuple(source.select(rows.new_tensor([i])) for source in sources),
                mass[i],
                found.idx[i],
                of_found[:, i],
                self._ppr.damping,
            )
            for i, row in enumerate(walking)
        }

    def _masses(
        self, sources: Sequence[SeedSource], *, trace: bool
    ) -> tuple[
        Float32[Tensor, "queries passages"],
        Float32[Tensor, "queries nodes"] | None,
        Float32[Tensor, "sources queries passages"] | None,
    ]:
        """The passages' scores, the mass of the joint walk and that of each source's; only what is needed."""
        graph, exponent = self._index.graph, self._seeding.start_exponent
        source_mass = source_masses(graph, sources, self._ppr) if trace or exponent < 1 else None
        if source_mass is not None and exponent < 1 and not trace:
            return power_mean(source_mass, exponent), None, source_mass
        mass = personalized_pagerank(graph.walk, reset_of(sources, num_nodes=graph.num_nodes), self._ppr)
        if source_mass is not None and exponent < 1:
            return power_mean(source_mass, exponent), mass, source_mass
        return mass[:, graph.num_phrases :].contiguous(), mass, source_mass


def _kept(decisions: Sequence[FilterDecision], facts: ConsideredFacts) -> Bool[Tensor, "queries facts"]:
    """The facts that a walk starts from: the facts shown are the first ones of a row."""
    kept = torch.zeros(facts.like.shape, dtype=torch.bool)
    for row, decision in enumerate(decisions):
        kept[row, list(decision.kept)] = not decision.error
    return kept.to(facts.like.device)


def _routes(decisions: Sequence[FilterDecision], evidence: Evidence, fact_ends: Ragged) -> list[Route]:
    """The way of each question."""
    start = evidence.start_from_facts(fact_ends).tolist()
    like, linked = evidence.facts.like.any(1).tolist(), evidence.linked.tolist()
    routes: list[Route] = []
    for row, decision in enumerate(decisions):
        # Facts that are kept and name no phrase, as sentences may, leave nothing to start from either.
        without = _NO_FACTS
        if like[row] and decision.error:
            without = _FILTER_ERROR
        elif like[row] and not decision.kept:
            without = _KEPT_NONE
        routes.append("graph" if start[row] else without[0] if linked[row] else without[1])
    return routes
