"""A folder's plan, and what a sync did with each of its files, as a person reads it on a terminal."""

from collections.abc import Mapping, Sequence

from hipporag_torch.console import console, warn
from hipporag_torch.console.rows import Row, num_passages, show_line, show_rows
from hipporag_torch.console.usage import estimate_rows, usage_rows
from hipporag_torch.folders import FileOutcome, FilePlan, FolderPlan, FolderReport
from hipporag_torch.llms.pricing import Prices


def show_folder_plan(
    plan: FolderPlan, *, extractor: str, embedder: str, prices: Prices | None = None, files: bool = False
) -> None:
    """What a sync would do, and what it would cost at most.

    extractor, embedder: what would extract and embed. files: list every file that is not as it was.
    """
    show_rows(
        [
            ("folder", f"{plan.root}, called {plan.root_id}"),
            *_count_rows({**plan.counts}, plan.unmatched),
            ("passages", _passages(plan)),
            ("model calls", f"{plan.extractor_calls:,} to extract"),
            *estimate_rows("tokens", plan.usage, prices),
            ("extracted by", extractor),
            ("embedded by", embedder),
        ]
    )
    if files:
        console.print()
        for file in plan.files:
            if file.action != "unchanged":
                show_line(_line(file.action, file.path, _planned(file)))


def show_folder_report(report: FolderReport, prices: Prices | None = None) -> None:
    """What a sync did, file by file; those that were unchanged are counted alone."""
    for file in report.files:
        if file.status != "unchanged":
            show_line(_line(file.status, file.path, _done(file)))
    console.print()
    show_rows(
        [
            *_count_rows({**report.counts}, report.unmatched),
            ("passages", f"{report.passages_added:,} added, {report.passages_removed:,} removed"),
            *usage_rows("model", report.usage, prices),
            ("seconds", f"{report.seconds:.1f}"),
        ]
    )
    if report.passages_failed:
        warn(
            f"{num_passages(report.passages_failed)} could not be extracted and are found by their vectors "
            "alone; the next sync tries again those that may heal"
        )
    if report.stopped:
        warn(f"{report.stopped}; the same command again goes on where this one stopped")


def _count_rows(counts: Mapping[str, int], unmatched: int) -> Sequence[Row]:
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    rows = [("files", told or "none")]
    if unmatched:
        rows.append(("", f"{unmatched:,} of other kinds, which no glob names"))
    if missing := counts.get("missing"):
        rows.append(("", f"{missing:,} not in the folder any more; --prune takes them out of the index"))
    return rows


def _passages(plan: FolderPlan) -> str:
    parts = [f"{plan.passages_new:,} new"]
    if plan.passages_retried:
        parts.append(f"{plan.passages_retried:,} that failed before and are tried again")
    if plan.passages_removed:
        parts.append(f"{plan.passages_removed:,} to remove")
    return ", ".join(parts)


def _line(status: str, path: str, told: str) -> str:
    return f"{status:<9}  {path}" + (f"  ({told})" if told else "")


def _planned(file: FilePlan) -> str:
    counts = [f"{num_passages(file.passages)}, {file.passages_new:,} new"] if file.passages else []
    if file.passages_left:
        counts.append(f"{file.passages_left:,} out")
    return "; ".join([*([", ".join(counts)] if counts else []), *([file.reason] if file.reason else [])])


def _done(file: FileOutcome) -> str:
    counts = [f"{num_passages(file.passages)}, {file.passages_added:,} new"] if file.passages else []
    if file.passages_removed:
        counts.append(f"{file.passages_removed:,} out")
    if file.passages_failed:
        counts.append(f"{file.passages_failed:,} could not be extracted")
    return "; ".join([*([", ".join(counts)] if counts else []), *([file.reason] if file.reason else [])])
