"""A run's course in plain files, beside what the evaluation writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.files import write_whole
from hipporag_torch.tracking.protocol import FinishedRun, RunStart

PROGRESS = "progress.jsonl"
FAILED = "failed.txt"


class FilesTracker:
    """Writes progress.jsonl: a line of JSON for each step, with `questions` asked and the step's values.

    A run that is killed leaves its lines, and one that goes on in its folder appends to them. Of a run that
    fails, failed.txt says why; it is gone when the run begins again.
    """

    def __init__(self) -> None:
        self._directory: Path | None = None

    @property
    def note(self) -> str:
        return ""

    def begin(self, run: RunStart) -> None:
        run.directory.mkdir(parents=True, exist_ok=True)
        self._directory = run.directory
        (run.directory / FAILED).unlink(missing_ok=True)
        path = run.directory / PROGRESS
        kept = _lines_up_to(path, run.done)
        # What was asked but not kept is asked again, and a line that was cut off is gone.
        write_whole(path, "".join(kept))

    def progress(self, questions: int, values: Mapping[str, float]) -> None:
        """Raises `InputError` for values that are no finite numbers."""
        if self._directory is None:
            raise InputError("no run is going on; call begin before progress")
        try:
            line = json.dumps({"questions": questions, **values}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{PROGRESS} cannot hold {dict(values)!r:.120}: {error}; expected finite numbers"
            ) from error
        # Opened anew: nothing stays open if the run ends here.
        with (self._directory / PROGRESS).open("a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")

    def finish(self, run: FinishedRun) -> None:
        self._directory = None

    def fail(self, reason: str) -> None:
        if self._directory is None:
            return
        (self._directory / FAILED).write_text(reason + "\n", encoding="utf-8", errors="replace")
        self._directory = None


def _lines_up_to(path: Path, done: int) -> list[str]:
    """The whole lines of at most `done` questions."""
    if done == 0 or not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    kept: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            questions = json.loads(line)["questions"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}, line {number} is no step of a run: {line!r:.80}; delete the file to go on without "
                "the earlier steps"
            ) from error
        if questions <= done:
            kept.append(line + "\n")
    return kept
