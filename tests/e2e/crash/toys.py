"""Operations on a toy index, to try the harness on: good ones, and ones with a fault that it must find.

The index is a file that a row of an SQLite table names. Its states are "before", "after" or damage.
"""

import ctypes
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

CONTENT = {"before": b"b" * 9000, "after": b"a" * 9001}


def make(directory: Path) -> None:
    """The template."""
    (directory / "before").write_bytes(CONTENT["before"])
    with closing(_connect(directory)) as connection, connection:
        connection.execute("CREATE TABLE names (name TEXT)")
        connection.execute("INSERT INTO names VALUES ('before')")


def good(directory: Path) -> None:
    """Publish a file, then name it."""
    _publish(directory)
    _name(directory)
    (directory / "before").unlink(missing_ok=True)


def named_too_early(directory: Path) -> None:
    """Name a file before it has its name: a crash in between leaves a name without a file."""
    partial = _write(directory)
    _name(directory)
    partial.replace(directory / "after")
    _sync(directory)


def in_place(directory: Path) -> None:
    """Write over what is named: a crash leaves half of it."""
    (directory / "before").write_bytes(CONTENT["after"])


def unsynced(directory: Path) -> None:
    """Rename what is not on the disk yet: only a power failure shows it."""
    (directory / "partial").write_bytes(CONTENT["after"])
    (directory / "partial").replace(directory / "after")
    _sync(directory)
    _name(directory)


def silent(directory: Path) -> None:
    """Take a part for the whole, as a raw write without a look at its result does."""
    with (directory / "partial").open("wb", buffering=0) as file:
        file.write(CONTENT["after"])
        os.fsync(file.fileno())
    (directory / "partial").replace(directory / "after")
    _sync(directory)
    _name(directory)


def swallowing(directory: Path) -> None:
    """Say nothing of a failure."""
    try:
        good(directory)
    except (OSError, sqlite3.Error):
        return


def by_other_ways(directory: Path) -> None:
    """Change files as C libraries do, in one call, and from one file to another."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(os.fsencode(directory / "stdio"), b"w"))
    libc.fputs(b"by the C library itself", file)
    libc.fclose(file)
    with (directory / "vector").open("wb", buffering=0) as opened:
        os.writev(opened.fileno(), [b"abc", b"defgh", b"ij"])
    shutil.copyfile(directory / "vector", directory / "copy")
    os.chdir(directory)
    os.mkdir("folder")
    folder = os.open("folder", os.O_RDONLY)
    os.link("vector", "linked", dst_dir_fd=folder)
    os.unlink("linked", dir_fd=folder)
    os.close(folder)
    os.rmdir("folder")
    os.truncate("copy", 3)


def wandering(directory: Path) -> None:
    """Take other steps than the time before."""
    mark = directory.parent / "mark"
    if mark.exists():
        mark.unlink()
        (directory / "another").mkdir()
    else:
        mark.touch()
    good(directory)


def hanging(directory: Path) -> None:
    """Wait for what never comes."""
    threading.Event().wait()


def threaded(directory: Path) -> None:
    """Write from four threads at once: 401 steps each with the file's making."""

    def fill(name: str) -> None:
        with (directory / name).open("wb", buffering=0) as file:
            for _ in range(400):
                file.write(b"row")

    threads = [threading.Thread(target=fill, args=(f"rows-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def state(directory: Path) -> str:
    """ "before", "after", or what is damaged."""
    with closing(_connect(directory)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM names")]
    if len(names) != 1:
        return f"the names {names}"
    file = directory / names[0]
    if not file.exists():
        return f"{names[0]} is named and not there"
    content = file.read_bytes()
    if names == ["before"] and content == CONTENT["after"]:
        return "after"  # in_place
    return names[0] if content == CONTENT[names[0]] else f"{len(content)} bytes of {names[0]}"


def write_a_file(directory: Path) -> str:
    """What a read-only disk says."""
    (directory / "new").write_bytes(b"new")
    return "written"


def _connect(directory: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(directory / "names.sqlite")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _write(directory: Path) -> Path:
    partial = directory / "partial"
    with partial.open("wb") as file:
        file.write(CONTENT["after"])
        file.flush()
        os.fsync(file.fileno())
    return partial


def _publish(directory: Path) -> None:
    _write(directory).replace(directory / "after")
    _sync(directory)


def _name(directory: Path) -> None:
    with closing(_connect(directory)) as connection, connection:
        connection.execute("UPDATE names SET name = 'after'")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
