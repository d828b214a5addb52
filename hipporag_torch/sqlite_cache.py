"""What caches are kept in: one SQLite file that processes share and that may be deleted at any time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hipporag_torch.errors import BackendError, CompatibilityError, ConfigError

# SQLite once allowed 999 parameters in a statement, and builds with that limit are still about.
KEYS_PER_QUERY = 900


class CacheFile:
    """A file of one kind of cache: made when first needed, never another program's database.

    Every connection is opened for one use and writes in one short transaction, so a process that is
    killed at any point leaves a readable file. The rollback journal is used, because SQLite's write-ahead
    log does not work on the network file systems of clusters.

    noun: what the cache is called in errors, such as "embedding cache".
    application: four bytes that mark the file as ours. schema: the version of its tables.
    tables: the statements that make them. wait_seconds: how long to wait while another process writes.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        noun: str,
        application: bytes,
        schema: int,
        tables: tuple[str, ...],
        wait_seconds: float,
    ) -> None:
        if not wait_seconds >= 0:
            raise ConfigError(f"cache.wait_seconds must be at least 0, got {wait_seconds}")
        self.path = Path(path).expanduser()
        self._noun = noun
        self._expected = (int.from_bytes(application), schema)
        self._tables = tables
        self._wait_seconds = wait_seconds

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """An open connection, in no transaction. Closed at the end of the block.

        Raises `CompatibilityError` if the file is damaged or is not such a cache, and `BackendError` if it
        cannot be opened or written, or stays locked.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level=None: transactions begin and end where they are written out, nowhere else.
            opened = sqlite3.connect(self.path, timeout=self._wait_seconds, isolation_level=None)
            with closing(opened) as connection:
                self._prepare(connection)
                yield connection
        except (sqlite3.OperationalError, OSError) as error:
            raise BackendError(
                f"the {self._noun} {self.path} could not be used: {error}; it must be a file that may be "
                "written, on a disk with free space, and not locked for long by another process; "
                "runtime.cache_dir names another folder, runtime.cache=false does without"
            ) from error
        except sqlite3.DatabaseError as error:
            raise CompatibilityError(
                f"the {self._noun} {self.path} cannot be read: {error}; expected an SQLite file that "
                "this library wrote. Delete it, it is only a cache, or set another runtime.cache_dir"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction, which is committed at the end of the block and only then."""
        with self.connection() as connection:
            # Immediate: two writers then wait for each other, instead of both reading and neither writing.
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # What is deleted leaves no bytes behind in the file.
        connection.execute("PRAGMA secure_delete = ON")
        if _marks(connection) == self._expected:
            return
        # Look again under the lock: another process may be making the same file.
        connection.execute("BEGIN IMMEDIATE")
        marks = _marks(connection)
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        if marks == (0, 0) and empty:
            for table in self._tables:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {self._expected[0]}")
            connection.execute(f"PRAGMA user_version = {self._expected[1]}")
        elif marks != self._expected:
            article = "an" if self._noun[0] in "aeiou" else "a"
            raise CompatibilityError(
                f"{self.path} is an SQLite file, but not {article} {self._noun} of this version: its marks "
                f"are {marks}, expected {self._expected}; delete it, or set "
                "runtime.cache_dir to another folder"
            )
        connection.execute("COMMIT")


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    return application, schema
