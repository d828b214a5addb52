"""The library's records as the results of tools."""

from collections.abc import Sequence

from hipporag_torch.chat import Usage
from hipporag_torch.explanation import ExplainedNode, Explanation
from hipporag_torch.folders import FolderReport
from hipporag_torch.maintenance import IndexStats
from hipporag_torch.reports import AddReport, FailedPassage, RemoveReport
from hipporag_torch.service import results
from hipporag_torch.service.plans import Planned, PlannedFolder
from hipporag_torch.service.views import State
from hipporag_torch.types import Answer, Passage, Ranking


def usage_result(usage: Usage) -> results.UsageResult:
    return results.UsageResult(
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_calls=usage.cached_calls,
    )


def passage_result(rank: int, score: float, passage: Passage) -> results.PassageResult:
    return results.PassageResult(
        rank=rank,
        score=score,
        passage_id=passage.id,
        title=passage.title,
        text=passage.text,
        sources=[
            results.SourceResult(
                source_id=source.source_id,
                position=source.position,
                start=source.start,
                end=source.end,
                metadata=dict(source.metadata),
            )
            for source in passage.sources
        ],
    )


def retrieve_result(generation: int, ranking: Ranking) -> results.RetrieveResult:
    return results.RetrieveResult(
        question=ranking.question,
        generation=generation,
        route=ranking.route,
        reason=ranking.reason,
        passages=_passages(ranking, ranking.passages),
        usage=usage_result(ranking.usage),
    )


def answer_result(generation: int, ranking: Ranking, answer: Answer) -> results.AnswerResult:
    return results.AnswerResult(
        question=answer.question,
        answer=answer.text,
        method=answer.method,
        flag=answer.flag,
        reason=answer.reason,
        score=answer.score,
        citations=list(answer.citations),
        passages=_passages(ranking, answer.passages),
        passages_left_out=answer.passages_left_out,
        route=ranking.route,
        generation=generation,
        usage=usage_result(ranking.usage + answer.usage),
    )


def _passages(ranking: Ranking, wanted: Sequence[Passage]) -> list[results.PassageResult]:
    ids = {passage.id for passage in wanted}
    ranked = enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1)
    return [passage_result(rank, score, passage) for rank, (passage, score) in ranked if passage.id in ids]


def plan_result(planned: Planned) -> results.PlanResult:
    change = planned.change
    return results.PlanResult(
        passages_new=change.passages_new,
        passages_known=change.passages_known,
        passages_retried=change.passages_retried,
        passages_removed=len(change.passages_removed),
        usage=_estimate(change.extractor_calls, change.usage),
        extractor=planned.producer,
        generation=planned.generation,
        confirm=planned.confirm,
    )


def _estimate(calls: int, usage: Usage) -> results.UsageResult:
    return usage_result(usage).model_copy(update={"calls": calls})


def added_result(report: AddReport) -> results.AddedResult:
    return results.AddedResult(
        documents=report.documents,
        passages_added=report.passages_added,
        passages_known=report.passages_known,
        phrases_added=report.phrases_added,
        facts_added=report.facts_added,
        failed=[failed_result(failed) for failed in report.failed],
        sources=[
            results.SourceCounts(
                source_id=source_id,
                passages_added=its.passages_added,
                passages_known=its.passages_known,
                failed=its.failed,
            )
            for source_id, its in report.sources.items()
        ],
        usage=usage_result(report.usage),
        passages_left=len(report.left),
        stopped=report.stopped,
    )


def failed_result(failed: FailedPassage) -> results.FailedResult:
    return results.FailedResult(
        passage_id=failed.passage_id,
        source_ids=list(failed.source_ids),
        reason=failed.reason,
        permanent=failed.permanent,
    )


def removed_result(report: RemoveReport) -> results.RemovedResult:
    return results.RemovedResult(
        passages_removed=list(report.passages_removed),
        passages_kept=list(report.passages_kept),
        phrases_removed=report.phrases_removed,
        facts_removed=report.facts_removed,
        not_found=list(report.not_found),
    )


def planned_folder_result(planned: PlannedFolder) -> results.FolderResult:
    plan = planned.plan
    return results.FolderResult(
        root=plan.root,
        root_id=plan.root_id,
        counts={str(action): count for action, count in plan.counts.items()},
        files=[
            results.FileResult(
                path=file.path,
                source_id=file.source_id,
                status=file.action,
                reason=file.reason,
                passages=file.passages,
                passages_new=file.passages_new,
                passages_removed=file.passages_left,
                passages_failed=0,
            )
            for file in plan.files
        ],
        unmatched=plan.unmatched,
        plan=results.PlanResult(
            passages_new=plan.passages_new,
            passages_known=sum(file.passages for file in plan.files) - plan.passages_new,
            passages_retried=plan.passages_retried,
            passages_removed=plan.passages_removed,
            usage=_estimate(plan.extractor_calls, plan.usage),
            extractor=planned.producer,
            generation=planned.generation,
            confirm=planned.confirm,
        ),
        usage=usage_result(Usage()),
        stopped="",
    )


def folder_result(report: FolderReport) -> results.FolderResult:
    return results.FolderResult(
        root=report.root,
        root_id=report.root_id,
        counts={str(status): count for status, count in report.counts.items()},
        files=[
            results.FileResult(
                path=file.path,
                source_id=file.source_id,
                status=file.status,
                reason=file.reason,
                passages=file.passages,
                passages_new=file.passages_added,
                passages_removed=file.passages_removed,
                passages_failed=file.passages_failed,
            )
            for file in report.files
        ],
        unmatched=report.unmatched,
        plan=None,
        usage=usage_result(report.usage),
        stopped=report.stopped,
    )


def stats_result(
    stats: IndexStats, state: State, *, read_only: bool, confirm_above: int | None
) -> results.StatsResult:
    disk = stats.disk
    assert disk is not None
    return results.StatsResult(
        path=disk.path,
        generation=disk.generation,
        read_only=read_only,
        passages=stats.counts.passages,
        sources=stats.counts.sources,
        phrases=stats.counts.phrases,
        facts=stats.counts.facts,
        synonyms=stats.counts.synonyms,
        edges=stats.counts.edges,
        without_facts=stats.without_facts,
        failed=[failed_result(failed) for failed in stats.failed],
        extractors=dict(stats.producers),
        embedder=stats.embedder.name,
        megabytes=round(disk.bytes / 1e6, 3),
        interrupted=disk.interrupted,
        loaded=state.loaded,
        writing=state.writing,
        writes_waiting=state.writes_waiting,
        confirm_above=confirm_above,
    )


def explain_result(generation: int, explanation: Explanation) -> results.ExplainResult:
    return results.ExplainResult(
        question=explanation.question,
        generation=generation,
        route=explanation.route,
        why=explanation.why,
        linked=list(explanation.linked),
        facts=[
            results.FactResult(parts=list(traced.fact.parts), score=traced.score, kept=traced.kept)
            for traced in explanation.facts
        ],
        passages=[
            results.ExplainedPassageResult(
                **passage_result(found.rank, found.score, found.passage).model_dump(),
                restart=found.restart,
                through=[results.ShareResult(phrase=phrase, share=share) for phrase, share in found.through],
                started_by={str(name): share for name, share in found.sources},
            )
            for found in explanation.passages
        ],
        nodes=[_node(node) for node in explanation.nodes],
        edges=[
            results.EdgeResult(
                source=edge.source,
                target=edge.target,
                weight=edge.weight,
                kinds=list(edge.kinds),
                predicates=list(edge.predicates),
            )
            for edge in explanation.edges
        ],
    )


def _node(node: ExplainedNode) -> results.NodeResult:
    return results.NodeResult(id=node.id, kind=node.kind, label=node.label, seed=node.seed_share)
