"""Locks between processes: one writer, and readers that keep their generation.

The kernel drops a lock when its holder ends, however it ends, so none is ever left behind.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hipporag_torch.errors import LockedError, StoreError
from hipporag_torch.store.disk import writing

_PAUSE_SECONDS = 0.05
WRITER_LOCK = "writer.lock"


@contextmanager
def writer_lock(directory: Path, action: str, wait_seconds: float | None) -> Iterator[str]:
    """Be the only writer in `directory` while the block runs.

    wait_seconds: how long to wait for another writer; 0 fails at once, None waits for as long as it takes.
    Gives what the lock file says of a writer that was interrupted, or the empty string.
    Raises `LockedError` that names the holder.
    """
    try:
        descriptor = os.open(directory / WRITER_LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(
            f"{directory} cannot be written: {error.strerror}; make it writable, or open it with "
            "read_only=true"
        ) from error
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        if not _locked(file, fcntl.LOCK_EX, wait_seconds):
            raise LockedError(
                f"another process is writing to {directory} ({_read_note(file) or 'it has not said who'}), "
                f"waited {wait_seconds:g} s; try again later, or give index.wait_seconds more"
            )
        interrupted = _read_note(file)
        with writing(directory / WRITER_LOCK):
            note = {"action": action, "pid": os.getpid(), "host": socket.gethostname()}
            _write_note(file, json.dumps(note))
        try:
            yield interrupted
        finally:
            # A killed writer never gets here: its note stays, for the next one to read.
            # What is committed stays so if the note cannot be wiped.
            with suppress(OSError):
                _write_note(file, "")


def interrupted_writer(directory: Path) -> str:
    """What a writer that was killed had in hand, or the empty string; a writer at work counts as none."""
    try:
        with (directory / WRITER_LOCK).open("rb", buffering=0) as file:
            note = _read_note(file)
            return note if note and _locked(file, fcntl.LOCK_SH, 0) else ""
    except OSError:
        return ""


def hold(path: Path) -> BinaryIO:
    """`path`, opened for reading and locked so that `is_held` says so until it is closed."""
    file = path.open("rb", buffering=0)
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def is_held(path: Path) -> bool:
    """Whether any process holds `path`."""
    # Network file systems want a file that an exclusive lock is asked for to be open for writing.
    with path.open("r+b", buffering=0) as file:
        return not _locked(file, fcntl.LOCK_EX, 0)


def wait_until_free(paths: list[Path], wait_seconds: float | None) -> list[Path]:
    """Wait until nothing holds `paths`; those that are still held when the time is over."""
    deadline = None if wait_seconds is None else time.monotonic() + wait_seconds
    while held := [path for path in paths if path.exists() and is_held(path)]:
        if deadline is not None and time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE_SECONDS)
    return held


def holders(path: Path) -> list[int]:
    """The processes that hold `path`, where the system tells (Linux)."""
    inode = path.stat().st_ino
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    # "1: FLOCK  ADVISORY  READ 1234 08:01:131 0 EOF": the process is fifth, the sixth ends with the inode.
    rows = [line.split() for line in lines]
    found = {int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].split(":")[-1] == str(inode)}
    return sorted(found)


def _locked(file: BinaryIO, kind: int, wait_seconds: float | None) -> bool:
    if wait_seconds is None:
        fcntl.flock(file, kind)
        return True
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_SECONDS)


def _read_note(file: BinaryIO) -> str:
    file.seek(0)
    note = file.read(4096).decode("utf-8", errors="replace").strip()
    try:
        told = json.loads(note)
        return f"action {told['action']}, process {told['pid']} on {told['host']}"
    except (ValueError, KeyError, TypeError):
        return note


def _write_note(file: BinaryIO, note: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(note.encode("utf-8"))
