"""What the scripts show on a terminal: progress, tables, warnings and clean errors. All through rich."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from hipporag_torch import types
from hipporag_torch.errors import HippoRAGError

console = Console()
_errors = Console(stderr=True)


@contextmanager
def clean_errors() -> Iterator[None]:
    """Show the library's own errors as a sentence instead of a traceback, and exit with status 1."""
    try:
        yield
    except HippoRAGError as error:
        kind = type(error).__name__
        _errors.print(f"[bold red]{kind}[/]: {escape(str(error))}", soft_wrap=True)
        sys.exit(1)


@contextmanager
def progress_bar() -> Iterator[types.Progress]:
    """A `progress` callable that draws a bar per stage, with rate and time left."""
    columns = (
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_errors, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, rate="")
            task = bars.tasks[bars.task_ids.index(tasks[stage])]
            rate = f"{done / task.elapsed:,.0f}/s" if task.elapsed and done else ""
            bars.update(tasks[stage], completed=done, total=total, rate=rate)

        yield advance


def warn(message: str) -> None:
    """A warning that a person must see, on standard error."""
    _errors.print(f"[bold yellow]warning[/]: {escape(message)}", soft_wrap=True)


def quiet_third_parties() -> None:
    """Keep the start-up chatter of model libraries out of a script's output; warnings still show."""
    for name in ("sentence_transformers", "transformers", "httpx", "huggingface_hub", "bm25s"):
        logging.getLogger(name).setLevel(logging.WARNING)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1
) -> Table:
    """A table whose first `text_columns` columns hold text and whose others hold numbers."""
    drawn = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="left" if number < text_columns else "right")
    for row in rows:
        drawn.add_row(*(escape(cell) for cell in row))
    return drawn
