"""What a tracker is told of a run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hipporag_torch.evaluation.run import Evaluation


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """A run before its first question.

    `directory` is the run's folder. `config` is nested and plain, its secrets masked already; `facts` is
    what is known beside it, of the data set and the index (JSON-like). `group` is what the runs of a sweep
    share. `done` counts the questions that an earlier, unfinished run in the same folder has asked.
    """

    name: str
    directory: Path
    config: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    done: int = 0


@dataclass(frozen=True)
class Picture:
    """A PNG in the run's folder; `html` is the same as a page."""

    caption: str
    png: Path
    html: Path | None = None


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run whose files are written.

    `extra` is what metrics.json holds beside the metrics. Of it, `seconds` (stage → seconds), `usage`
    (role → counts) and `money` (role → amount) are also shown as tables, where they are there.
    `machine` is what `machine.machine_facts` says.
    """

    evaluation: Evaluation
    extra: Mapping[str, Any] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)


class Tracker(Protocol):
    """Records one run after another: `begin`, any number of `progress`, then `finish` or `fail`."""

    @property
    def note(self) -> str:
        """What a person should know of where the run is recorded, once it began; may be empty."""
        ...

    def begin(self, run: RunStart) -> None: ...

    def progress(self, questions: int, values: Mapping[str, float]) -> None:
        """`values` when `questions` have been asked, which rises from call to call."""
        ...

    def finish(self, run: FinishedRun) -> None: ...

    def fail(self, reason: str) -> None:
        """The run stopped before its end. Does nothing where none is going on."""
        ...


@contextmanager
def tracked(tracker: Tracker, run: RunStart) -> Iterator[None]:
    """Begin a run, and have it fail if what is done in it raises or is interrupted; the exception goes on.

    Whoever uses it calls `finish`.
    """
    try:
        tracker.begin(run)
        yield
    except BaseException as error:
        tracker.fail(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        raise
