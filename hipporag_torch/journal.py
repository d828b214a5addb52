"""Extractions as they are finished, a line each: what a run that was interrupted had is not made again."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hipporag_torch.errors import InputError, LockedError, StoreError
from hipporag_torch.store.records import extraction_from_json, extraction_to_json
from hipporag_torch.types import Extraction, Passage

# A line survives the end of the process at once, and that of the machine after so long.
_SECONDS_BETWEEN_SYNCS = 0.25


@dataclass(frozen=True)
class _Line:
    offset: int
    failed: bool
    permanent: bool


class ExtractionJournal:
    """A file of lines {id, producer, extraction}, of which the last one of a passage counts.

    Lines of other producers stay and are not looked at; a line that a crash cut off is dropped. Extractions
    stay on the disk: only their places are held. Open one with `opened`, or `read_only` to look.
    """

    def __init__(self, path: Path, producer: str, file: BinaryIO | None = None) -> None:
        self.path = path
        self._file = file
        self._producer = producer
        self._lines: dict[str, _Line] = {}
        self.num_others = 0
        self._synced_at = time.monotonic()
        self._whole = self._scan() if path.exists() else 0

    @classmethod
    def read_only(cls, path: Path, producer: str) -> "ExtractionJournal":
        """The journal as it stands, to be looked at."""
        return cls(path, producer)

    @classmethod
    @contextmanager
    def opened(cls, path: Path, producer: str) -> Iterator["ExtractionJournal"]:
        """The journal, made if there is none, for this process alone to write.

        Raises `LockedError` if another process writes it, `StoreError` if it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("r+b" if path.exists() else "w+b")
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}; give another output") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LockedError(
                    f"another process is writing {path}; wait for it, or give another output or shard"
                ) from error
            journal = cls(path, producer, file)
            file.truncate(journal._whole)
            try:
                yield journal
            finally:
                os.fsync(file.fileno())
                if not journal._whole:
                    path.unlink()

    def __contains__(self, passage_id: str) -> bool:
        return passage_id in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def is_done(self, passage_id: str, *, permanent: bool) -> bool:
        """Whether a passage need not be extracted: it is, or it failed for good and that is to stay so."""
        line = self._lines.get(passage_id)
        return line is not None and (not line.failed or (line.permanent and not permanent))

    def append(self, passage: Passage, extraction: Extraction) -> None:
        """Write down an extraction, in a journal that was `opened`."""
        assert self._file is not None
        content = extraction_to_json(extraction)
        head = json.dumps({"id": passage.id, "producer": self._producer})[:-1]
        self._file.seek(self._whole)
        line = f'{head}, "extraction": {content}}}\n'.encode()
        self._file.write(line)
        self._file.flush()
        self._note(passage.id, self._whole, extraction)
        self._whole += len(line)
        if time.monotonic() - self._synced_at >= _SECONDS_BETWEEN_SYNCS:
            os.fsync(self._file.fileno())
            self._synced_at = time.monotonic()

    def extractions(self, passage_ids: list[str]) -> Iterator[Extraction]:
        """Those of some passages, which must be here, in that order."""
        with self.path.open("rb") as file:
            for passage_id in passage_ids:
                file.seek(self._lines[passage_id].offset)
                yield self._parsed(file.readline(), passage_id)[1]

    def _scan(self) -> int:
        """Note every whole line; where the last one ends."""
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                row, extraction = self._parsed(line, f"line {number}")
                if row["producer"] == self._producer:
                    self._note(row["id"], offset, extraction)
                else:
                    self.num_others += 1
                offset += len(line)
        return offset

    def _parsed(self, line: bytes, place: str) -> tuple[dict[str, str], Extraction]:
        try:
            row = json.loads(line)
            return {"id": row["id"], "producer": row["producer"]}, extraction_from_json(
                json.dumps(row["extraction"])
            )
        except (ValueError, KeyError, TypeError, StoreError) as error:
            raise InputError(
                f"{self.path}, {place}, is not a line of a journal of extractions: {error}; give another "
                "output, or delete the line, whose passage is then extracted again"
            ) from error

    def _note(self, passage_id: str, offset: int, extraction: Extraction) -> None:
        self._lines[passage_id] = _Line(offset, extraction.status == "failed", extraction.permanent)
