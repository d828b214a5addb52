"""Locks between processes: each other process here is a real one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hipporag_torch.errors import LockedError, StoreError
from hipporag_torch.store.locks import (
    WRITER_LOCK,
    hold,
    holders,
    interrupted_writer,
    is_held,
    wait_until_free,
    writer_lock,
)

# The package alone would import torch, which takes seconds.
LOADED = f"""
import sys, types
from pathlib import Path
for name in ("hipporag_torch", "hipporag_torch.store"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(Path(__file__).resolve().parents[3])!r} + "/" + name.replace(".", "/")]
from hipporag_torch.store import locks
"""


@contextmanager
def process(code: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs `code`, has printed a line, and waits until its input is closed."""
    started = subprocess.Popen(
        [sys.executable, "-c", LOADED + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        try:
            yield started
        finally:
            assert started.stdin is not None
            started.stdin.close()
            started.wait(timeout=10)


def writer(directory: Path, action: str = "add") -> str:
    return (
        f"with locks.writer_lock(Path({str(directory)!r}), {action!r}, 0):\n"
        "    print('ready', flush=True)\n    sys.stdin.read()\n"
    )


def test_a_second_writer_fails_at_once_and_names_the_first(tmp_path: Path) -> None:
    with process(writer(tmp_path)) as other:
        start = time.monotonic()
        message = rf"another process is writing .*action add, process {other.pid} on .*, waited 0 s.*wait_sec"
        with pytest.raises(LockedError, match=message), writer_lock(tmp_path, "remove", 0):
            pass
        assert time.monotonic() - start < 1


@pytest.mark.parametrize("wait_seconds", [10.0, None])
def test_a_second_writer_waits_for_the_first(tmp_path: Path, wait_seconds: float | None) -> None:
    with process(writer(tmp_path)) as other:
        assert other.stdin is not None
        threading.Timer(0.2, other.stdin.close).start()
        with writer_lock(tmp_path, "remove", wait_seconds) as interrupted:
            assert interrupted == ""


def test_the_lock_of_a_killed_process_is_free_and_its_note_is_told(tmp_path: Path) -> None:
    with process(writer(tmp_path, "compact")) as other:
        assert interrupted_writer(tmp_path) == "", "it is at work"
        os.kill(other.pid, signal.SIGKILL)
        other.wait(timeout=10)
    assert interrupted_writer(tmp_path).startswith(f"action compact, process {other.pid} on ")
    with writer_lock(tmp_path, "add", 0) as interrupted:
        assert interrupted.startswith(f"action compact, process {other.pid} on ")
    assert interrupted_writer(tmp_path) == ""
    with writer_lock(tmp_path, "add", 0) as interrupted:
        assert interrupted == ""


def test_a_writer_that_raises_was_not_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyError), writer_lock(tmp_path, "add", 0):
        raise KeyError
    assert interrupted_writer(tmp_path) == ""
    assert (tmp_path / WRITER_LOCK).read_bytes() == b""


def test_a_note_that_nobody_can_read_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / WRITER_LOCK).write_bytes(b"{half a \xff")
    with writer_lock(tmp_path, "add", 0) as interrupted:
        assert interrupted == "{half a \ufffd"


def test_holds_are_shared_and_named(tmp_path: Path) -> None:
    path = tmp_path / "3-1.safetensors"
    path.touch()
    assert not is_held(path)
    code = f"file = locks.hold(Path({str(path)!r}))\nprint('ready', flush=True)\nsys.stdin.read()\n"
    with process(code) as other, hold(path):
        assert is_held(path)
        if Path("/proc/locks").exists():
            assert holders(path) == sorted([os.getpid(), other.pid])
    assert not is_held(path)
    assert holders(path) == []


def test_waiting_for_readers_ends_when_they_do_or_when_the_time_is_over(tmp_path: Path) -> None:
    held, free, gone = tmp_path / "held", tmp_path / "free", tmp_path / "gone"
    held.touch()
    free.touch()
    file = hold(held)
    assert wait_until_free([held, free, gone], 0.1) == [held]
    threading.Timer(0.1, file.close).start()
    assert wait_until_free([held, free, gone], 10) == []
    assert wait_until_free([held, free, gone], None) == []


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / WRITER_LOCK).mkdir()
    with (
        pytest.raises(StoreError, match=r"cannot be written: Is a directory.*read_only=true"),
        writer_lock(tmp_path, "add", 0),
    ):
        pass
