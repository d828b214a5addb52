"""Connections to an index's records.sqlite: made, marked, and opened for reading or for writing."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from hipporag_torch.errors import CompatibilityError, LockedError, StoreError

RECORDS = "records.sqlite"
# Marks the file as ours, so that no other program's database is ever taken for an index.
_APPLICATION = int.from_bytes(b"HRTi")
SCHEMA = 2
_BUSY_SECONDS = 60.0


def make_database(directory: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make the tables and what `fill` puts into them in one transaction: a crash leaves nothing or all."""
    with opened(directory, write=True, new=True) as connection, transaction(connection):
        script = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")
        for statement in _statements(script):
            connection.execute(statement)
        fill(connection)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")


def is_made(directory: Path, *, write: bool) -> bool:
    """Whether the directory has its records; what a crash during the making leaves does not count."""
    path = directory / RECORDS
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with opened(directory, write=write, new=True) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return tables > 0


@contextmanager
def opened(
    directory: Path, *, write: bool, new: bool = False, tolerant: bool = False
) -> Iterator[sqlite3.Connection]:
    """A connection to the records; its errors come out as `StoreError` with what to do.

    Without `write` nothing is written, not even a journal that a crash left behind: that is an error then.
    The rollback journal is used: a write-ahead log cannot be read without writing beside it, and does not
    work on network file systems. With `tolerant`, a damaged text that is no UTF-8 any more is read with
    lone surrogates in it, so that `check` can name its row and `repair` replace it.
    """
    path = directory / RECORDS
    mode = ("rwc" if new else "rw") if write else "ro"
    uri = f"file:{quote(str(path.resolve()))}?mode={mode}"
    with _clear_errors(path, write):
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
        )
        try:
            _prepare(connection, write=write, tolerant=tolerant)
            if not new:
                _require_marks(connection, path)
            yield connection
        finally:
            connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that the block writes, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits at the end, rolls back on any error
        yield


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All that the block reads is of one moment: no commit happens until it ends."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def _clear_errors(path: Path, write: bool) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise LockedError(
                f"{path} stayed locked by another process for {_BUSY_SECONDS:g} s; try again later"
            ) from error
        journal = path.with_name(path.name + "-journal")
        if not write and journal.exists() and name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            raise StoreError(
                f"{path} was left in the middle of a commit ({journal.name} is there), and reading alone "
                "cannot undo it; open the index once for writing (action=stats is enough), then read again"
            ) from error
        way_out = "free some space" if name == "SQLITE_FULL" else "check that the directory may be written"
        raise StoreError(
            f"{path} could not be {'written' if write else 'read'}: {error}; {way_out}. Nothing is lost: the "
            "index opens as it was before, or after"
        ) from error
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"{path} cannot be read: {error}; expected the records of an index. It is damaged or not ours: "
            "restore it from a backup, or build the index again in another directory"
        ) from error


def _prepare(connection: sqlite3.Connection, *, write: bool, tolerant: bool) -> None:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except UnicodeDecodeError as error:
        # Python cannot read SQLite's message about a damaged table definition, which quotes it.
        raise sqlite3.DatabaseError(f"malformed database schema ({error.reason})") from error
    if write:
        connection.execute("PRAGMA synchronous = FULL")
        # What is deleted is overwritten, so that it cannot be read from the file any more.
        connection.execute("PRAGMA secure_delete = ON")
    if tolerant:
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")


def _require_marks(connection: sqlite3.Connection, path: Path) -> None:
    application, schema = _marks(connection)
    if application != _APPLICATION:
        raise StoreError(
            f"{path} is an SQLite file, but not the records of an index: its application id is "
            f"{application}, expected {_APPLICATION}; name another directory"
        )
    if schema != SCHEMA:
        raise CompatibilityError(
            f"{path} has schema {schema}, this version of hipporag_torch reads schema {SCHEMA}; "
            + ("install a newer hipporag_torch" if schema > SCHEMA else "build the index again")
        )


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    return application, schema


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end the transaction first."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
