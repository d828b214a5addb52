"""The library's records as JSON. The keys are those of the MCP server's results, and stay as they are."""

from typing import Any

from hipporag_torch.chat import Usage
from hipporag_torch.explanation import Explanation
from hipporag_torch.folders import FileOutcome, FilePlan, FolderPlan, FolderReport
from hipporag_torch.maintenance import IndexStats
from hipporag_torch.reports import FailedPassage, RemoveReport
from hipporag_torch.types import Answer, Passage, Ranking

Row = dict[str, Any]


def usage_row(usage: Usage) -> Row:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_calls": usage.cached_calls,
    }


def passage_row(rank: int, score: float, passage: Passage) -> Row:
    return {
        "rank": rank,
        "score": score,
        "passage_id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "sources": [
            {
                "source_id": source.source_id,
                "position": source.position,
                "start": source.start,
                "end": source.end,
                "metadata": dict(source.metadata),
            }
            for source in passage.sources
        ],
    }


def passage_rows(ranking: Ranking) -> list[Row]:
    found = enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1)
    return [passage_row(rank, score, passage) for rank, (passage, score) in found]


def ranking_row(ranking: Ranking) -> Row:
    """What was found for a question."""
    return {
        "question": ranking.question,
        "route": ranking.route,
        "reason": ranking.reason,
        "passages": passage_rows(ranking),
        "usage": usage_row(ranking.usage),
    }


def answer_row(ranking: Ranking, answer: Answer) -> Row:
    """An answer with all passages that were found; those that were read say so."""
    read = set(answer.passage_ids)
    passages = passage_rows(ranking)
    return {
        "question": answer.question,
        "answer": answer.text,
        "method": answer.method,
        "flag": answer.flag,
        "reason": answer.reason or ranking.reason,
        "score": answer.score,
        "citations": list(answer.citations),
        "passages": [{**row, "read": row["passage_id"] in read} for row in passages],
        "passages_left_out": answer.passages_left_out,
        "route": ranking.route,
        "usage": usage_row(ranking.usage + answer.usage),
    }


def failed_row(failed: FailedPassage) -> Row:
    return {
        "passage_id": failed.passage_id,
        "source_ids": list(failed.source_ids),
        "reason": failed.reason,
        "permanent": failed.permanent,
    }


def stats_row(stats: IndexStats) -> Row:
    """What an index in a directory holds."""
    disk, counts = stats.disk, stats.counts
    assert disk is not None
    return {
        "path": disk.path,
        "generation": disk.generation,
        "passages": counts.passages,
        "sources": counts.sources,
        "phrases": counts.phrases,
        "facts": counts.facts,
        "synonyms": counts.synonyms,
        "edges": counts.edges,
        "without_facts": stats.without_facts,
        "failed": [failed_row(failed) for failed in stats.failed],
        "extractors": dict(stats.producers),
        "embedder": stats.embedder.name,
        "megabytes": round(disk.bytes / 1e6, 3),
        "interrupted": disk.interrupted,
    }


def removed_row(report: RemoveReport, *, preview: bool) -> Row:
    return {
        "preview": preview,
        "removed": {
            "passages_removed": list(report.passages_removed),
            "passages_kept": list(report.passages_kept),
            "phrases_removed": report.phrases_removed,
            "facts_removed": report.facts_removed,
            "not_found": list(report.not_found),
        },
    }


def folder_row(plan: FolderPlan, report: FolderReport | None, *, extractor: str, embedder: str) -> Row:
    """A plan, and what was done of it; without a report it was a dry run."""
    return {
        "dry_run": report is None,
        "root": plan.root,
        "root_id": plan.root_id,
        "counts": dict(plan.counts if report is None else report.counts),
        "files": [_planned_file(f) for f in plan.files]
        if report is None
        else [_done_file(f) for f in report.files],
        "unmatched": plan.unmatched,
        "plan": {
            "passages_new": plan.passages_new,
            "passages_retried": plan.passages_retried,
            "passages_removed": plan.passages_removed,
            "usage": {**usage_row(plan.usage), "calls": plan.extractor_calls},
            "extractor": extractor,
            "embedder": embedder,
        },
        "usage": usage_row(Usage() if report is None else report.usage),
        "stopped": "" if report is None else report.stopped,
    }


def _planned_file(file: FilePlan) -> Row:
    return {
        "path": file.path,
        "source_id": file.source_id,
        "status": file.action,
        "reason": file.reason,
        "passages": file.passages,
        "passages_new": file.passages_new,
        "passages_removed": file.passages_left,
        "passages_failed": 0,
    }


def _done_file(file: FileOutcome) -> Row:
    return {
        "path": file.path,
        "source_id": file.source_id,
        "status": file.status,
        "reason": file.reason,
        "passages": file.passages,
        "passages_new": file.passages_added,
        "passages_removed": file.passages_removed,
        "passages_failed": file.passages_failed,
    }


def explanation_row(explanation: Explanation) -> Row:
    return {
        "question": explanation.question,
        "route": explanation.route,
        "why": explanation.why,
        "linked": list(explanation.linked),
        "facts": [
            {"parts": list(traced.fact.parts), "score": traced.score, "kept": traced.kept}
            for traced in explanation.facts
        ],
        "passages": [
            {
                **passage_row(found.rank, found.score, found.passage),
                "restart": found.restart,
                "through": [{"phrase": phrase, "share": share} for phrase, share in found.through],
                "started_by": dict(found.sources),
            }
            for found in explanation.passages
        ],
        "nodes": [
            {"id": node.id, "kind": node.kind, "label": node.label, "seed": node.seed_share}
            for node in explanation.nodes
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "weight": edge.weight,
                "kinds": list(edge.kinds),
                "predicates": list(edge.predicates),
            }
            for edge in explanation.edges
        ],
    }
