"""The questions that an unfinished run has asked so far, so that it can go on where it was stopped."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.files import row_from, row_line, write_whole
from hipporag_torch.evaluation.rows import QuestionRow

DRAFT = "predictions.part.jsonl"


class Draft:
    """Rows as they come, in a file of the run's folder that is gone once the run is written.

    A run that is killed at any point leaves whole lines and at most one that is cut off, which is dropped.

    settings: what decides the rows, JSON-like. Rows that were made with others are refused.
    """

    def __init__(self, directory: str | Path, settings: Mapping[str, Any]) -> None:
        self._path = Path(directory) / DRAFT
        self._settings = json.loads(json.dumps(settings))

    def rows(self) -> tuple[QuestionRow, ...]:
        """Those of an earlier call of the same run, in the order in which they were made; none without one.

        Raises `InputError` if its settings were others, or if a line other than the last is damaged.
        """
        if not self._path.is_file():
            return ()
        # Not splitlines(): U+2028 and its like stand unescaped inside the strings. What follows the last
        # newline was cut off.
        head, *lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] or [""]
        if not head:
            return ()
        try:
            settings = json.loads(head)["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self._path} does not say with which settings it was made; delete it to begin anew"
            ) from error
        if others := differences(settings, self._settings):
            raise InputError(
                f"{self._path.parent} holds an unfinished run with other settings: {others}; go on with its "
                "own, or give another folder"
            )
        return tuple(
            row_from(line, f"{self._path}, line {number}") for number, line in enumerate(lines, start=2)
        )

    def begin(self, rows: Sequence[QuestionRow]) -> None:
        """Write the settings and the rows that there are: what was cut off is gone from the file."""
        head = json.dumps({"settings": self._settings}, ensure_ascii=False, sort_keys=True) + "\n"
        write_whole(self._path, head + "".join(row_line(row, DRAFT) for row in rows))

    def keep(self, rows: Sequence[QuestionRow]) -> None:
        """Append some rows; they survive a kill from here on."""
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            file.write("".join(row_line(row, DRAFT) for row in rows))
            file.flush()
            os.fsync(file.fileno())

    def done(self) -> None:
        """The run is written: the file goes."""
        self._path.unlink(missing_ok=True)


def differences(was: Any, now: Any, prefix: str = "", limit: int = 5) -> str:
    """The dotted keys whose values differ, with both; empty if none do."""
    found = list(_differing(was, now, prefix))
    shown = ", ".join(f"{key} was {old}, is {new}" for key, old, new in found[:limit])
    return shown + (f" and {len(found) - limit} more" if len(found) > limit else "")


def _differing(was: Any, now: Any, prefix: str) -> list[tuple[str, str, str]]:
    if isinstance(was, dict) and isinstance(now, dict):
        keys = sorted({*was, *now})
        place = f"{prefix}." if prefix else ""
        return [part for key in keys for part in _differing(was.get(key), now.get(key), f"{place}{key}")]
    return [] if was == now else [(prefix, f"{was!r:.60}", f"{now!r:.60}")]
