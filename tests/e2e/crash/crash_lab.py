"""Kills an operation at every durable step, or makes the step fail, and hands over what is left.

    def test_adding_is_all_or_nothing(crash_lab, template):
        lab = crash_lab(Path(__file__).with_name("operations.py"), template)
        trials = lab.trials("add_two", ["kill", "tear", "enospc", "eio", "short", "full"])
        seen = check_all_or_nothing(lab, "add_two", "state", trials)
        assert seen["before"] and seen["after"]

`operations.py` holds `def add_two(directory: Path) -> None` and `def state(directory: Path) -> str`. By hand:

        for trial in lab.trials("add_two", ["kill"]):
            assert lab.inspect("state", trial.directory) in (before, after), trial.description
            lab.run("add_two", trial.directory)
            assert lab.inspect("state", trial.directory) == after, trial.description

The operation has to take the same steps each time, and to be one that may be repeated. What a killed process
has written is there for the next one, synced or not: whether it syncs is for `ordering.unsynced` to say.
"""

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .client import Report, Step, Zygote

MODES: dict[str, tuple[str, str, str]] = {
    "kill": ("kill", "", "any"),
    "tear": ("tear", "", "writes"),
    "enospc": ("fail", "ENOSPC", "takes_space"),
    "eio": ("fail", "EIO", "any"),
    "short": ("short", "", "writes"),
    "full": ("full", "ENOSPC", "takes_space"),
}
"""Ways for a step to go wrong: the mode of faults.c, the errno, and the steps that it makes sense for.

kill: SIGKILL before the step. tear: half of what it writes, then SIGKILL. enospc, eio: that step alone fails.
short: it writes half and says so, as a write may. full: the same, and all later steps that take space fail.
"""


@dataclass(frozen=True)
class Trial:
    """A run that went wrong on purpose: what is left, and how the operation took it."""

    description: str
    directory: Path
    report: Report


class CrashLab:
    """Runs operations on copies of `template`, in forks of `zygote`, below the folder `work`.

    The directory of a trial lasts until the next trial.
    """

    def __init__(self, zygote: Zygote, template: Path, work: Path) -> None:
        self.zygote, self.template = zygote, template
        self._trial, self._looked_at = work / "trial", work / "looked-at"

    def steps(self, operation: str) -> tuple[Step, ...]:
        """The durable steps of an operation on a copy of the template, where all goes well."""
        return self._completed(operation).steps

    def count(self, operation: str) -> int:
        """How many durable steps it has."""
        return len(self.steps(operation))

    def run(self, operation: str, directory: Path) -> Any:
        """Run an operation where nothing goes wrong; it has to complete. Gives what it gave."""
        return self.zygote.run(operation, directory).completed_or_fail(f"{operation} on {directory}")

    def inspect(self, inspection: str, directory: Path) -> Any:
        """What an inspection gives, from a process of its own, on a copy: looking must repair nothing."""
        report = self.zygote.run(inspection, self._looked_at, template=directory)
        return report.completed_or_fail(f"{inspection} on a copy of {directory}")

    def trials(self, operation: str, modes: Sequence[str]) -> Iterator[Trial]:
        """For each mode (see `MODES`) and each step that it makes sense for, a run that goes wrong there."""
        steps = self.steps(operation)
        assert steps, f"{operation} does nothing to {self._trial}"
        for name in modes:
            which = MODES[name][2]
            for step in steps:
                if which == "any" or getattr(step, which):
                    yield self._trial_at(operation, name, step, steps)

    def random_kills(self, operation: str, count: int, seed: int) -> Iterator[Trial]:
        """Kill the operation at random moments between its start and the time that it takes."""
        # Steps are not counted, so that syncing takes the time that it takes.
        duration, moments = self._completed(operation, "off").seconds, random.Random(seed)
        for _ in range(count):
            moment = moments.uniform(0.0, duration)
            report = self.zygote.run(
                operation, self._trial, template=self.template, mode="off", kill_after=moment
            )
            description = f"{operation}: killed after {moment * 1000:.2f} ms of {duration * 1000:.2f}"
            if not report.killed:
                report.completed_or_fail(description)
            yield Trial(description, self._trial, report)

    def states(self, operation: str, inspection: str) -> tuple[Any, Any]:
        """What an inspection gives before the operation and after it, where all goes well."""
        before = self.inspect(inspection, self.template)
        self._completed(operation)
        return before, self.inspect(inspection, self._trial)

    def keep(self, directory: Path) -> "CrashLab":
        """A lab whose template is what a trial left, for a second failure on top of the first."""
        kept = self._trial.with_name("kept")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(directory, kept / "template", symlinks=True)
        return CrashLab(self.zygote, kept / "template", kept)

    def _completed(self, operation: str, mode: str = "count") -> Report:
        report = self.zygote.run(operation, self._trial, template=self.template, mode=mode)
        report.completed_or_fail(f"{operation} on a copy of {self.template}")
        return report

    def _trial_at(self, operation: str, name: str, step: Step, steps: Sequence[Step]) -> Trial:
        mode, error, _ = MODES[name]
        description = f"{operation}: {name} at step {step.number} of {len(steps)} ({step})"
        report = self.zygote.run(
            operation, self._trial, template=self.template, mode=mode, nth=step.number, error=error
        )
        # A trial that went another way than the counted run would leave steps untried.
        taken = [taken.call for taken in report.steps[: step.number]]
        planned = [planned.call for planned in steps[: step.number]]
        assert taken == planned, f"{description}: its steps were {taken}, those of the first run {planned}"
        if mode in ("kill", "tear"):
            assert report.killed, f"{description}: it was not killed, its status is {report.status}"
        elif not report.raised:
            report.completed_or_fail(description)
        return Trial(description, self._trial, report)


def check_all_or_nothing(
    lab: CrashLab, operation: str, inspection: str, trials: Iterable[Trial]
) -> Counter[str]:
    """Assert that each trial left the state before or the state after, and that repeating completes it.

    What did not complain has to have happened. Gives how many trials left "before" and how many "after".
    """
    before, after = lab.states(operation, inspection)
    assert before != after, f"{inspection} sees nothing of {operation}: {before}"
    seen: Counter[str] = Counter()
    for trial in trials:
        state = lab.inspect(inspection, trial.directory)
        assert state in (before, after), f"{trial.description}: it left {state!r}"
        assert state == after or not trial.report.completed, f"{trial.description}: lost without a word"
        lab.run(operation, trial.directory)
        again = lab.inspect(inspection, trial.directory)
        assert again == after, f"{trial.description}: repeating gave {again!r}"
        seen["after" if state == after else "before"] += 1
    return seen
