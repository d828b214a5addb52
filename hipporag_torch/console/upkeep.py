"""What stands in an index, and what its upkeep did or would do, as a person reads it on a terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.markup import escape

from hipporag_torch.console import console, warn
from hipporag_torch.console.rows import (
    LISTED,
    Row,
    counted,
    in_bytes,
    num_passages,
    options_text,
    reason_lines,
    show_line,
    show_rows,
)
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
from hipporag_torch.reports import FailedPassage


def show_stats(stats: IndexStats) -> None:
    """What an index holds, was built with and has failed at."""
    counts = asdict(stats.counts)
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    if stats.without_facts:
        rows.append(("without facts", num_passages(stats.without_facts)))
    for number, (name, count) in enumerate(stats.producers.items()):
        rows.append(("" if number else "extracted by", f"{name or 'nothing'}: {num_passages(count)}"))
    rows.append(("text", options_text(asdict(stats.text))))
    rows.append(
        ("graph", f"{type(stats.graph_options).__name__} {options_text(asdict(stats.graph_options))}")
    )
    if stats.disk is None:
        rows.append(("embedder", describe_embedder(stats.embedder)))
    else:
        rows += _disk_rows(stats.disk)
    show_rows(rows)
    _show_failed(stats.failed)
    if stats.disk is not None and stats.disk.interrupted:
        warn(
            f"a writer was interrupted ({stats.disk.interrupted}); the index is as it was before, and what "
            "was paid for is used when the action is run again"
        )


def show_checked(report: CheckReport) -> None:
    """What a `check` found."""
    console.print("checked " + counted(report.checked), highlight=False)
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
            show_line(f"  {finding.part}: {finding.problem}")
    if report.embedded:
        show_line(f"{report.embedded:,} texts were embedded again")
    if report.quarantined:
        warn(
            f"the extractions of {num_passages(report.quarantined)} were lost; they are found by their "
            "vectors alone until action=retry extracts them again"
        )
    _show_findings(report.unmended)


def show_compacted(report: CompactReport) -> None:
    """What a `compact` dropped."""
    show_rows(
        [
            ("dropped", counted(report.dropped) or "nothing"),
            ("size", f"{in_bytes(report.bytes_before)} before, {in_bytes(report.bytes_after)} after"),
        ]
    )
    for trouble in report.not_erased:
        warn(f"removed text may still stand somewhere: {trouble}")


def show_reembedded(report: ReembedReport) -> None:
    """What a `reembed` did."""
    texts = {f"{kind}s": count for kind, count in report.texts.items()}
    show_rows(
        [
            ("embedder", describe_embedder(report.embedder)),
            ("texts", f"{counted(texts)}; {report.embedded:,} had to be embedded"),
            ("seconds", f"{report.seconds:.1f}"),
        ]
    )


def show_rebuilt(report: RebuildReport) -> None:
    """What a `rebuild_graph` did."""
    show_rows(
        [
            ("edges", f"{report.edges_before:,} before, {report.edges_after:,} after"),
            ("seconds", f"{report.seconds:.1f}"),
        ]
    )


def show_to_compact(disk: DiskStats) -> None:
    """What a `compact` would drop."""
    dropped = counted(disk.removed)
    show_rows(
        [
            ("to drop", f"{dropped}, and their vectors" if dropped else "nothing"),
            ("size", in_bytes(disk.bytes)),
        ]
    )


def show_to_reembed(stats: IndexStats, embedder: EmbedderIdentity) -> None:
    """What a `reembed` would do."""
    counts = stats.counts
    texts = {"passages": counts.passages, "phrases": counts.phrases, "facts": counts.facts}
    kept = next((e for e in stats.disk.embedders if e.identity == embedder), None) if stats.disk else None
    what = "the index has vectors of it; what is new since" if kept else "all of these"
    show_rows(
        [
            ("embedder", f"{describe_embedder(stats.embedder)} at present"),
            ("", f"{describe_embedder(embedder)} then"),
            ("texts", f"{counted(texts)}; {what} would be embedded"),
        ]
    )


def show_exported(paths: Iterable[object], left_out: int, *, would: bool = False) -> None:
    """What an `export` wrote, or would write."""
    for path in paths:
        show_line(f"{'would write' if would else 'written'} {path}")
    if left_out:
        warn(f"{left_out:,} passages are left out: their extraction failed, which the format cannot say")


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
    rows.append(("size", in_bytes(disk.bytes)))
    if disk.staged_extractions or disk.spare_vectors:
        staged = f"{disk.staged_extractions:,} extractions, {disk.spare_vectors:,} vectors"
        rows.append(("at hand", f"{staged} that are not paid for again"))
    if disk.removed:
        rows.append(("removed", f"{counted(disk.removed)}; action=compact erases them"))
    return rows


def _show_failed(failed: Sequence[FailedPassage]) -> None:
    if not failed:
        return
    console.print(
        f"\n[bold]failed[/] {num_passages(failed)}; action=retry extracts them again", highlight=False
    )
    for line in reason_lines(failed):
        show_line(line)


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        console.print(
            f"[bold red]{finding.part}[/]: {escape(finding.problem)}", highlight=False, soft_wrap=True
        )
        if finding.ids and finding.ids[0] not in finding.problem:
            more = " …" if len(finding.ids) > LISTED else ""
            show_line(f"  {', '.join(finding.ids[:LISTED])}{more}")
        show_line(f"  → {finding.way_out}")
