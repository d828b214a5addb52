"""Pieces of what a person reads on a terminal: rows with a name, counts, sizes, long texts cut short."""

from collections.abc import Iterable, Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from hipporag_torch.console import console
from hipporag_torch.reports import FailedPassage
from hipporag_torch.types import Trace, TracedPassage
from hipporag_torch.viz.text import of_own, shares_text

# More of one kind are counted, not listed.
LISTED = 10

Row = tuple[str, str]


def show_rows(rows: Iterable[Row]) -> None:
    """A name and a value on each line."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, escape(value))
    console.print(grid, highlight=False)


def show_line(text: str) -> None:
    """A line as it is, however long."""
    console.print(escape(text), highlight=False, soft_wrap=True, emoji=False)


def counted(counts: Mapping[str, int]) -> str:
    """`3 phrases, 1 source`."""
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())


def num_passages(which: int | Sequence[object]) -> str:
    """`1 passage`, `2 passages`."""
    count = which if isinstance(which, int) else len(which)
    return f"{count:,} passage{'' if count == 1 else 's'}"


def in_bytes(size: float) -> str:
    """A size with its unit."""
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("kB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} GB"


def shortened(text: str, limit: int = 80) -> str:
    """In one line, with an ellipsis where it is cut."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def seeds_text(trace: Trace, *, most: int = LISTED) -> str:
    """`oslo 19% (entities 12, facts 7) · norway 3% (facts 3) · 4 more`: phrases that seed, heaviest first.

    Those that hardly seed, with less than half a per cent, are counted alone.
    """
    seeds = [seed for seed in trace.seeds if seed.kind == "phrase"]
    telling = [seed for seed in seeds if seed.weight >= 0.005][:most]
    shown = [f"{seed.name} {seed.weight:.0%} ({shares_text(seed.sources)})" for seed in telling]
    more = len(seeds) - len(telling)
    return " · ".join(shown + ([f"{more:,} more"] if more else []))


def mostly_from(passage: TracedPassage | None) -> str:
    """`entities 61%`: the source of most of a passage's mass, if it was traced."""
    if passage is None or not passage.sources:
        return ""
    name, share = max(of_own(passage.sources), key=lambda source: source[1])
    return f"{name} {share:.0%}"


def seconds_rows(seconds: Mapping[str, float]) -> list[Row]:
    """Seconds by stage, if there are some."""
    return (
        [("seconds", " · ".join(f"{stage} {spent:.1f}" for stage, spent in seconds.items()))]
        if seconds
        else []
    )


def options_text(options: Mapping[str, object]) -> str:
    """`name=value name=value`."""
    return " ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.items()
    )


def reason_lines(failed: Sequence[FailedPassage]) -> list[str]:
    """Which passages failed, and why; the first of many."""
    lines = [
        f"  {failure.passage_id}: {shortened(failure.reason, 200)}"
        + (" (permanent: retried with retry.permanent=true only)" if failure.permanent else "")
        for failure in failed[:LISTED]
    ]
    return lines + ([f"  and {len(failed) - LISTED:,} more"] if len(failed) > LISTED else [])
