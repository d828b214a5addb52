"""What was done to an index, or would be done, as a person reads it on a terminal."""

from collections.abc import Mapping, Sequence

from hipporag_torch.console import console, table, warn
from hipporag_torch.console.rows import (
    LISTED,
    Row,
    counted,
    num_passages,
    reason_lines,
    seconds_rows,
    shortened,
    show_line,
    show_rows,
)
from hipporag_torch.console.usage import estimate_rows, usage_rows
from hipporag_torch.index import Index
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.reports import (
    AddReport,
    ChangePlan,
    ExtractReport,
    FailedPassage,
    RemoveReport,
    UpdateReport,
)


def show_opened(path: str, index: Index) -> None:
    """That an index was there, and that nothing was built."""
    show_line(
        f"opened the index {path}: {num_passages(len(index.passages))}, {len(index.phrases):,} phrases, "
        f"{len(index.facts):,} facts; nothing was built"
    )


def show_added(report: AddReport, prices: Prices | None = None) -> None:
    """What an `add` did. prices: of the model that extracted, if any."""
    show_rows(
        [
            ("documents", f"{report.documents:,}"),
            ("passages", f"{report.passages_added:,} added, {report.passages_known:,} known already"),
            ("phrases", f"{report.phrases_added:,} added"),
            ("facts", f"{report.facts_added:,} added"),
            *_oddities(report.dropped, report.without_facts),
            *(
                [("cut", f"{num_passages(report.truncated)} longer than the embedder reads")]
                if report.truncated
                else []
            ),
            *usage_rows("model", report.usage, prices),
            *seconds_rows(report.seconds),
        ]
    )
    _show_sources(report)
    warn_failed(report.failed)
    warn_stopped(report)


def show_updated(report: UpdateReport, prices: Prices | None = None) -> None:
    """What an `update` did."""
    added, removed = report.added, report.removed
    show_rows(
        [
            ("source", report.source_id),
            ("documents", f"{added.documents:,}"),
            (
                "passages",
                f"{added.passages_added:,} added, {added.passages_known:,} known already, "
                f"{len(removed.passages_removed):,} removed",
            ),
            *_kept(removed),
            ("phrases", f"{added.phrases_added:,} added, {removed.phrases_removed:,} removed"),
            ("facts", f"{added.facts_added:,} added, {removed.facts_removed:,} removed"),
            *_oddities(added.dropped, added.without_facts),
            *usage_rows("model", added.usage, prices),
            *seconds_rows(added.seconds),
        ]
    )
    warn_failed(added.failed)


def show_removed(report: RemoveReport, *, would: bool = False) -> None:
    """What a `remove` did, or would do."""
    verb = "to remove" if would else "removed"
    show_rows(
        [
            ("passages", f"{len(report.passages_removed):,} {verb}"),
            *_kept(report),
            ("phrases", f"{report.phrases_removed:,} {verb}"),
            ("facts", f"{report.facts_removed:,} {verb}"),
        ]
    )
    if report.not_found:
        named = ", ".join(shortened(name) for name in report.not_found[:LISTED])
        more = f" and {len(report.not_found) - LISTED:,} more" if len(report.not_found) > LISTED else ""
        warn(f"not in the index, of what was named: {named}{more}")


def show_extracted(report: ExtractReport, prices: Prices | None = None) -> None:
    """What a `retry` or `reextract` did."""
    show_rows(
        [
            ("passages", f"{len(report.passages):,} extracted, {len(report.failed):,} of them failed"),
            ("phrases", f"{report.phrases_added:,} added, {report.phrases_removed:,} removed"),
            ("facts", f"{report.facts_added:,} added, {report.facts_removed:,} removed"),
            *_oddities(report.dropped, report.without_facts),
            *usage_rows("model", report.usage, prices),
            *seconds_rows(report.seconds),
        ]
    )
    warn_failed(report.failed, "keep what they had before, if anything")
    warn_stopped(report)


def show_plan(plan: ChangePlan, prices: Prices | None = None) -> None:
    """What a change would do, and what its extractions would cost at most."""
    if plan.documents:
        rows = [
            ("documents", f"{plan.documents:,}"),
            ("passages", f"{plan.passages_new:,} new, {plan.passages_known:,} known already"),
        ]
    else:
        rows = [("passages", f"{plan.passages_known:,} to extract again")]
    if plan.passages_retried:
        rows.append(("", f"{plan.passages_retried:,} of these failed before and are tried again"))
    if plan.passages_removed:
        rows.append(("", f"{len(plan.passages_removed):,} to remove"))
    rows.append(("model calls", f"{plan.extractor_calls:,} to extract"))
    show_rows([*rows, *estimate_rows("tokens", plan.usage, prices)])


def warn_failed(failed: Sequence[FailedPassage], outcome: str = "are found by their vectors alone") -> None:
    """Say which passages could not be extracted, and why; the first of many."""
    if failed:
        warn(
            "\n".join(
                [f"{num_passages(failed)} could not be extracted and {outcome}:", *reason_lines(failed)]
            )
        )


def warn_of_failed(failed: Sequence[FailedPassage]) -> None:
    """The same in a line, where adding was not the point."""
    if failed:
        warn(f"{len(failed):,} passages have no extraction; the first: {failed[0].reason}")


def _show_sources(report: AddReport) -> None:
    # Documents without a source of their own are one source each: that says nothing that a sum does not.
    if not 0 < len(report.sources) <= LISTED or len(report.sources) == report.documents > 1:
        return
    rows = [
        [
            shortened(name, 40),
            f"{source.passages_added:,}",
            f"{source.passages_known:,}",
            f"{source.failed:,}",
        ]
        for name, source in report.sources.items()
    ]
    console.print(table("", ["source", "added", "known", "failed"], rows))


def _kept(report: RemoveReport) -> list[Row]:
    if not report.passages_kept:
        return []
    return [("", f"{len(report.passages_kept):,} stay, other sources hold them too")]


def _oddities(dropped: Mapping[str, int], without_facts: Sequence[str]) -> list[Row]:
    rows = [("dropped", counted(dropped))] if dropped else []
    if without_facts:
        rows.append(("without facts", f"{num_passages(without_facts)}, found by their vectors alone"))
    return rows


def warn_stopped(report: AddReport | ExtractReport) -> None:
    """That a budget was spent, and what is left for the next run."""
    if report.stopped:
        left = num_passages(report.left)
        warn(f"{report.stopped}; {left} left out: the same again goes on where this one stopped")
