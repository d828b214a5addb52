"""What the scripts show on a terminal: progress, tables, warnings and clean errors. All through rich."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
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
from rich.prompt import Confirm
from rich.table import Table

from hipporag_torch import types
from hipporag_torch.errors import HippoRAGError


class _OneConsole(Console):
    """Goes to the processes of a sweep by its name: what it holds cannot be pickled."""

    def __reduce__(self) -> str:
        return "console"


console = _OneConsole()
_errors = Console(stderr=True)


@contextmanager
def clean_errors(*, go_on: bool = False) -> Iterator[None]:
    """Show the library's own errors as a sentence instead of a traceback, and exit with status 1.

    go_on: let the error out once it is shown: the other jobs of a sweep go on, and it fails at its end.
    """
    try:
        yield
    except HippoRAGError as error:
        kind = type(error).__name__
        _errors.print(f"[bold red]{kind}[/]: {escape(str(error))}", soft_wrap=True)
        if go_on:
            raise
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
    with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as bars:
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


def ask_yes_or_no(question: str) -> bool:
    """What a person at the terminal says to it; no if the terminal is closed."""
    try:
        return Confirm.ask(escape(question), console=_errors, default=False)
    except EOFError:
        return False


def quiet_third_parties() -> None:
    """Keep the chatter of other libraries out of a script's output; their warnings still show.

    The handlers filter it, since some libraries set their own level when they are imported, later.
    """

    def worth_showing(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name.split(".")[0] == "hipporag_torch"

    for handler in logging.getLogger().handlers:
        handler.addFilter(worth_showing)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1
) -> Table:
    """A table whose first `text_columns` columns hold text and whose others hold numbers."""
    drawn = Table(
        title=title or None, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="left" if number < text_columns else "right")
    for row in rows:
        drawn.add_row(*(escape(cell) for cell in row))
    return drawn
