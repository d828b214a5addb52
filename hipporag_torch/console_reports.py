"""What was done to an index, would be done, or stands in it, as a person reads it on a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from rich.markup import escape
from rich.table import Table

from hipporag_torch.console import console, table, warn
from hipporag_torch.index import Index
from hipporag_torch.maintenance import (
    CheckReport,
    CompactReport,
    DiskStats,
    Finding,
    IndexStats,
    RebuildReport,
    ReembedReport,
    RepairReport,
)
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.reports import (
    AddReport,
    ChangePlan,
    ExtractReport,
    FailedPassage,
    RemoveReport,
    UpdateReport,
)

# More of one kind are counted, not listed.
_LISTED = 10

Row = tuple[str, str]


def show_opened(path: str, index: Index) -> None:
    """That an index was there, and that nothing was built."""
    _line(
        f"opened the index {path}: {_passages(len(index.passages))}, {len(index.phrases):,} phrases, "
        f"{len(index.facts):,} facts; nothing was built"
    )


def show_added(report: AddReport) -> None:
    """What an `add` did."""
    _show_rows(
        [
            ("documents", f"{report.documents:,}"),
            ("passages", f"{report.passages_added:,} added, {report.passages_known:,} known already"),
            ("phrases", f"{report.phrases_added:,} added"),
            ("facts", f"{report.facts_added:,} added"),
            *_oddities(report.dropped, report.without_facts),
            *(
                [("cut", f"{_passages(report.truncated)} longer than the embedder reads")]
                if report.truncated
                else []
            ),
            *_seconds(report.seconds),
        ]
    )
    _show_sources(report)
    warn_failed(report.failed)


def show_updated(report: UpdateReport) -> None:
    """What an `update` did."""
    added, removed = report.added, report.removed
    _show_rows(
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
            *_seconds(added.seconds),
        ]
    )
    warn_failed(added.failed)


def show_removed(report: RemoveReport, *, would: bool = False) -> None:
    """What a `remove` did, or would do."""
    verb = "to remove" if would else "removed"
    _show_rows(
        [
            ("passages", f"{len(report.passages_removed):,} {verb}"),
            *_kept(report),
            ("phrases", f"{report.phrases_removed:,} {verb}"),
            ("facts", f"{report.facts_removed:,} {verb}"),
        ]
    )
    if report.not_found:
        named = ", ".join(_shortened(name) for name in report.not_found[:_LISTED])
        more = f" and {len(report.not_found) - _LISTED:,} more" if len(report.not_found) > _LISTED else ""
        warn(f"not in the index, of what was named: {named}{more}")


def show_extracted(report: ExtractReport) -> None:
    """What a `retry` or `reextract` did."""
    _show_rows(
        [
            ("passages", f"{len(report.passages):,} extracted, {len(report.failed):,} of them failed"),
            ("phrases", f"{report.phrases_added:,} added, {report.phrases_removed:,} removed"),
            ("facts", f"{report.facts_added:,} added, {report.facts_removed:,} removed"),
            *_oddities(report.dropped, report.without_facts),
            *_seconds(report.seconds),
        ]
    )
    warn_failed(report.failed, "keep what they had before, if anything")


def show_plan(plan: ChangePlan) -> None:
    """What a change would do."""
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
    _show_rows(rows)


def show_stats(stats: IndexStats) -> None:
    """What an index holds, was built with and has failed at."""
    counts = asdict(stats.counts)
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    if stats.without_facts:
        rows.append(("without facts", _passages(stats.without_facts)))
    for number, (name, count) in enumerate(stats.producers.items()):
        rows.append(("" if number else "extracted by", f"{name or 'nothing'}: {_passages(count)}"))
    rows.append(("text", _options(asdict(stats.text))))
    rows.append(("graph", f"{type(stats.graph_options).__name__} {_options(asdict(stats.graph_options))}"))
    if stats.disk is None:
        rows.append(("embedder", describe_embedder(stats.embedder)))
    else:
        rows += _disk_rows(stats.disk)
    _show_rows(rows)
    _show_failed(stats.failed)
    if stats.disk is not None and stats.disk.interrupted:
        warn(
            f"a writer was interrupted ({stats.disk.interrupted}); the index is as it was before, and what "
            "was paid for is used when the action is run again"
        )


def show_checked(report: CheckReport) -> None:
    """What a `check` found."""
    console.print("checked " + _counted(report.checked), highlight=False)
    if not report.findings:
        console.print("[green]nothing wrong[/]")
    _show_findings(report.findings)


def show_repaired(report: RepairReport) -> None:
    """What a `repair` mended, and what it could not."""
    if not report.mended and not report.unmended:
        console.print("[green]nothing wrong, nothing to mend[/]")
        return
    if report.mended:
        console.print(f"[green]mended[/] {len(report.mended)}", highlight=False)
        for finding in report.mended:
            _line(f"  {finding.part}: {finding.problem}")
    if report.embedded:
        _line(f"{report.embedded:,} texts were embedded again")
    if report.quarantined:
        warn(
            f"the extractions of {_passages(report.quarantined)} were lost; they are found by their vectors "
            "alone until action=retry extracts them again"
        )
    _show_findings(report.unmended)


def show_compacted(report: CompactReport) -> None:
    """What a `compact` dropped."""
    _show_rows(
        [
            ("dropped", _counted(report.dropped) or "nothing"),
            ("size", f"{_bytes(report.bytes_before)} before, {_bytes(report.bytes_after)} after"),
        ]
    )
    for trouble in report.not_erased:
        warn(f"removed text may still stand somewhere: {trouble}")


def show_reembedded(report: ReembedReport) -> None:
    """What a `reembed` did."""
    texts = {f"{kind}s": count for kind, count in report.texts.items()}
    _show_rows(
        [
            ("embedder", describe_embedder(report.embedder)),
            ("texts", f"{_counted(texts)}; {report.embedded:,} had to be embedded"),
            ("seconds", f"{report.seconds:.1f}"),
        ]
    )


def show_rebuilt(report: RebuildReport) -> None:
    """What a `rebuild_graph` did."""
    _show_rows(
        [
            ("edges", f"{report.edges_before:,} before, {report.edges_after:,} after"),
            ("seconds", f"{report.seconds:.1f}"),
        ]
    )


def show_to_compact(disk: DiskStats) -> None:
    """What a `compact` would drop."""
    dropped = _counted(disk.removed)
    _show_rows(
        [("to drop", f"{dropped}, and their vectors" if dropped else "nothing"), ("size", _bytes(disk.bytes))]
    )


def show_to_reembed(stats: IndexStats, embedder: EmbedderIdentity) -> None:
    """What a `reembed` would do."""
    counts = stats.counts
    texts = {"passages": counts.passages, "phrases": counts.phrases, "facts": counts.facts}
    kept = next((e for e in stats.disk.embedders if e.identity == embedder), None) if stats.disk else None
    what = "the index has vectors of it; what is new since" if kept else "all of these"
    _show_rows(
        [
            ("embedder", f"{describe_embedder(stats.embedder)} at present"),
            ("", f"{describe_embedder(embedder)} then"),
            ("texts", f"{_counted(texts)}; {what} would be embedded"),
        ]
    )


def show_exported(paths: Iterable[object], left_out: int, *, would: bool = False) -> None:
    """What an `export` wrote, or would write."""
    for path in paths:
        _line(f"{'would write' if would else 'written'} {path}")
    if left_out:
        warn(f"{left_out:,} passages are left out: their extraction failed, which the format cannot say")


def warn_failed(failed: Sequence[FailedPassage], outcome: str = "are found by their vectors alone") -> None:
    """Say which passages could not be extracted, and why; the first of many."""
    if failed:
        warn("\n".join([f"{_passages(failed)} could not be extracted and {outcome}:", *_reasons(failed)]))


def warn_of_failed(failed: Sequence[FailedPassage]) -> None:
    """The same in a line, where adding was not the point."""
    if failed:
        warn(f"{len(failed):,} passages have no extraction; the first: {failed[0].reason}")


def describe_embedder(identity: EmbedderIdentity) -> str:
    """An embedder on a line: its name, its length and where its weights come from."""
    weights = f", weights {identity.weights.rpartition(':')[2][:12]}" if identity.weights else ""
    instructions = (
        f", instructions for {', '.join(r for r, _ in identity.instructions)}"
        if identity.instructions
        else ""
    )
    return f"{identity.name} (dim {identity.dim}{weights}{instructions})"


def _disk_rows(disk: DiskStats) -> list[Row]:
    rows = []
    for number, kept in enumerate(disk.embedders):
        state = "" if kept.generation == disk.generation else f", stops at generation {kept.generation}"
        role = "main, " if kept.main and len(disk.embedders) > 1 else ""
        line = f"{describe_embedder(kept.identity)}, {role}kept as {kept.vector_type}{state}"
        rows.append(("" if number else "embedder", line))
    rows.append(("generation", f"{disk.generation}, by {disk.last_action}"))
    rows.append(("size", _bytes(disk.bytes)))
    if disk.staged_extractions or disk.spare_vectors:
        staged = f"{disk.staged_extractions:,} extractions, {disk.spare_vectors:,} vectors"
        rows.append(("at hand", f"{staged} that are not paid for again"))
    if disk.removed:
        rows.append(("removed", f"{_counted(disk.removed)}; action=compact erases them"))
    return rows


def _show_sources(report: AddReport) -> None:
    # Documents without a source of their own are one source each: that says nothing that a sum does not.
    if not 0 < len(report.sources) <= _LISTED or len(report.sources) == report.documents > 1:
        return
    rows = [
        [
            _shortened(name, 40),
            f"{source.passages_added:,}",
            f"{source.passages_known:,}",
            f"{source.failed:,}",
        ]
        for name, source in report.sources.items()
    ]
    console.print(table("", ["source", "added", "known", "failed"], rows))


def _show_failed(failed: Sequence[FailedPassage]) -> None:
    if not failed:
        return
    console.print(f"\n[bold]failed[/] {_passages(failed)}; action=retry extracts them again", highlight=False)
    for line in _reasons(failed):
        _line(line)


def _reasons(failed: Sequence[FailedPassage]) -> list[str]:
    lines = [
        f"  {failure.passage_id}: {_shortened(failure.reason, 200)}"
        + (" (permanent: retried with retry.permanent=true only)" if failure.permanent else "")
        for failure in failed[:_LISTED]
    ]
    return lines + ([f"  and {len(failed) - _LISTED:,} more"] if len(failed) > _LISTED else [])


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        console.print(
            f"[bold red]{finding.part}[/]: {escape(finding.problem)}", highlight=False, soft_wrap=True
        )
        if finding.ids and finding.ids[0] not in finding.problem:
            more = " …" if len(finding.ids) > _LISTED else ""
            _line(f"  {', '.join(finding.ids[:_LISTED])}{more}")
        _line(f"  → {finding.way_out}")


def _show_rows(rows: Iterable[Row]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, escape(value))
    console.print(grid, highlight=False)


def _line(text: str) -> None:
    console.print(escape(text), highlight=False, soft_wrap=True, emoji=False)


def _kept(report: RemoveReport) -> list[Row]:
    if not report.passages_kept:
        return []
    return [("", f"{len(report.passages_kept):,} stay, other sources hold them too")]


def _oddities(dropped: Mapping[str, int], without_facts: Sequence[str]) -> list[Row]:
    rows = [("dropped", _counted(dropped))] if dropped else []
    if without_facts:
        rows.append(("without facts", f"{_passages(without_facts)}, found by their vectors alone"))
    return rows


def _seconds(seconds: Mapping[str, float]) -> list[Row]:
    return (
        [("seconds", " · ".join(f"{stage} {spent:.1f}" for stage, spent in seconds.items()))]
        if seconds
        else []
    )


def _options(options: Mapping[str, object]) -> str:
    return " ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.items()
    )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())


def _passages(which: int | Sequence[object]) -> str:
    count = which if isinstance(which, int) else len(which)
    return f"{count:,} passage{'' if count == 1 else 's'}"


def _bytes(size: float) -> str:
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("kB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} GB"


def _shortened(text: str, limit: int = 80) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
