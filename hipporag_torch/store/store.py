"""An index directory: made, opened for reading, opened for a change."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hipporag_torch.errors import ConfigError, StoreError
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.store import database
from hipporag_torch.store.arrays import write_arrays
from hipporag_torch.store.database import RECORDS, is_made, make_database, opened, transaction
from hipporag_torch.store.disk import PARTIAL, digest_of_file, publish, unlink, writing
from hipporag_torch.store.embedders import (
    ARRAYS,
    VECTORS,
    EmbedderRow,
    advance_embedder,
    insert_embedder,
    read_embedders,
)
from hipporag_torch.store.identity import graph_to_json, text_to_json
from hipporag_torch.store.locks import WRITER_LOCK, is_held, writer_lock
from hipporag_torch.store.seal import seal
from hipporag_torch.store.session import Session
from hipporag_torch.store.snapshot import (
    Snapshot,
    choose_embedder,
    read_bare_snapshot,
    read_options,
    read_snapshot,
)
from hipporag_torch.store.vectors import KINDS, VectorType
from hipporag_torch.text import TextOptions

_OURS = {RECORDS, RECORDS + "-journal", WRITER_LOCK, ARRAYS, VECTORS}


@dataclass(frozen=True)
class Identity:
    """What an index was built with: its options, and the embedders that it has vectors of."""

    text: TextOptions
    graph_options: AnyGraphOptions
    embedders: tuple[EmbedderRow, ...]

    @property
    def main(self) -> EmbedderRow:
        main = next((row for row in self.embedders if row.main), None)
        if main is None:
            raise StoreError("no embedder of the index is the main one; restore it from a backup")
        return main


class Store:
    """The index in `directory`. Many processes may read it while one changes it.

    read_only: nothing under the directory is written, whatever happens.
    wait_seconds: how long a change waits for another writer; 0 fails at once, None waits for ever.
    """

    def __init__(
        self, directory: str | Path, *, read_only: bool = False, wait_seconds: float | None = 60.0
    ) -> None:
        if wait_seconds is not None and not wait_seconds >= 0:
            raise ConfigError(f"index.wait_seconds must be at least 0, or null, got {wait_seconds}")
        self.directory = Path(directory)
        self.read_only = read_only
        self.wait_seconds = wait_seconds

    @property
    def is_made(self) -> bool:
        """Whether there is an index. Raises `StoreError` if there is something else in its place."""
        if not self.directory.exists():
            return False
        if not self.directory.is_dir():
            raise StoreError(f"{self.directory} is a file, expected an index directory; name another path")
        foreign = sorted(path.name for path in self.directory.iterdir() if path.name not in _OURS)
        if foreign and not (self.directory / RECORDS).exists():
            raise StoreError(
                f"{self.directory} is not an index directory: it has no {RECORDS}, but holds "
                f"{', '.join(foreign[:3])}{' …' if len(foreign) > 3 else ''}; name an index, or a new "
                "directory"
            )
        return is_made(self.directory, write=not self.read_only)

    def require_made(self) -> None:
        """Raise `StoreError` unless there is an index."""
        if not self.is_made:
            raise StoreError(
                f"there is no index in {self.directory} (looked from {Path.cwd()}); name one that exists, "
                "or make it: scripts/index.py action=add, or HippoRAG.open with an embedder and not "
                "read-only"
            )

    def make(self, index: Index, *, settings: str = "{}", dtype: VectorType = "float32") -> None:
        """Make the directory and put the empty `index` into it, unless another process has just done so."""
        if self.read_only:
            self.require_made()
            return
        with writing(self.directory):
            for folder in (ARRAYS, VECTORS):
                (self.directory / folder).mkdir(parents=True, exist_ok=True)
        with writer_lock(self.directory, "make", self.wait_seconds):
            if self.is_made:
                return

            def fill(connection: sqlite3.Connection) -> None:
                for name, value in (
                    ("text", text_to_json(index.text)),
                    ("graph", graph_to_json(index.graph_options)),
                ):
                    connection.execute("INSERT INTO properties VALUES (?, ?)", (name, value))
                connection.execute("INSERT INTO generations VALUES (0, 'make', 0, 0, 0, 0, 0)")
                row = insert_embedder(connection, index.embedder, settings, dtype)
                path = self.directory / ARRAYS / f"0-{row.id}.safetensors"
                rows = dict.fromkeys(KINDS, index.statements.passage_idx[:0])
                publish(path, lambda partial: write_arrays(partial, index, rows, about=row.about(0)))
                size, digest = path.stat().st_size, digest_of_file(path)
                advance_embedder(
                    connection,
                    replace(
                        row,
                        main=True,
                        generation=0,
                        arrays=path.name,
                        arrays_bytes=size,
                        arrays_digest=digest,
                    ),
                )
                seal(connection)

            make_database(self.directory, fill)

    def identity(self) -> Identity:
        """What the index was built with."""
        with self.reading() as connection:
            return Identity(*read_options(connection), tuple(read_embedders(connection)))

    def read(self, embedder: EmbedderIdentity | None = None) -> Snapshot:
        """The last generation, with the vectors of `embedder`, or of the main one."""
        with self.reading() as connection:
            row = choose_embedder(connection, self.directory, embedder)
            return read_snapshot(self.directory, connection, row, write=not self.read_only)

    def generation(self, embedder: EmbedderIdentity) -> int:
        """The last generation that has vectors of `embedder`."""
        with self.reading() as connection:
            return choose_embedder(connection, self.directory, embedder).generation

    @contextmanager
    def write(self, action: str, known: Snapshot) -> Iterator[Session]:
        """Be the only writer while the block runs; the session starts from the last generation.

        known: a snapshot of the embedder to work with, which is taken if nobody has committed since.
        """
        self._require_writable(action)
        with (
            writer_lock(self.directory, action, self.wait_seconds),
            opened(self.directory, write=True) as connection,
        ):
            with database.snapshot(connection):
                row = choose_embedder(connection, self.directory, known.embedder.identity)
                fresh = row.generation != known.generation or row.id != known.embedder.id
                start = read_snapshot(self.directory, connection, row, write=True) if fresh else known
            with ExitStack() as stack:
                if fresh:
                    stack.callback(start.close)
                session = Session(self.directory, connection, start, start.embedder)
                yield session
                if session.snapshot is start:
                    stack.pop_all()  # nothing was committed: the caller goes on with it
            clean(self.directory, connection)

    @contextmanager
    def rebuild(
        self,
        action: str,
        *,
        embedder: EmbedderIdentity | None = None,
        settings: str = "{}",
        dtype: VectorType | None = None,
    ) -> Iterator[Session]:
        """As `write`, from the records alone: the snapshot's index has no vectors and no graph.

        embedder: whose vectors the session keeps, the main one by default; one that is new to the index
        is registered. dtype: how they are kept, as they are by default.
        """
        self._require_writable(action)
        with (
            writer_lock(self.directory, action, self.wait_seconds),
            opened(self.directory, write=True, tolerant=True) as connection,
        ):
            rows = read_embedders(connection)
            main = Identity(*read_options(connection), tuple(rows)).main
            own = [r for r in rows if r.identity == (embedder or main.identity)]
            row = next((r for r in own if dtype in (None, r.dtype)), None)
            if row is None:
                identity = embedder or main.identity
                with transaction(connection):
                    row = insert_embedder(connection, identity, settings, dtype or main.dtype)
                    seal(connection)
            if settings != "{}":
                row = replace(row, settings=settings)
            with database.snapshot(connection):
                start = read_bare_snapshot(self.directory, connection, row)
            yield Session(self.directory, connection, start, row)
            clean(self.directory, connection)

    @contextmanager
    def inspecting(self) -> Iterator[sqlite3.Connection]:
        """A connection to look at everything for long; writers wait meanwhile, unless this is read-only."""
        self.require_made()
        with ExitStack() as stack:
            if not self.read_only:
                stack.enter_context(writer_lock(self.directory, "check", self.wait_seconds))
            yield stack.enter_context(opened(self.directory, write=not self.read_only, tolerant=True))

    def _require_writable(self, action: str) -> None:
        if self.read_only:
            raise ConfigError(
                f"{self.directory} was opened read-only, so {action} cannot change it; open it without "
                "read_only"
            )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads one moment of the records; nobody commits while the block runs."""
        self.require_made()
        with opened(self.directory, write=not self.read_only) as connection, database.snapshot(connection):
            yield connection


def clean(directory: Path, connection: sqlite3.Connection) -> None:
    """Delete the files that nothing refers to and nobody reads any more. Only the writer may."""
    named = {row.arrays for row in read_embedders(connection)}
    for (name,) in connection.execute("SELECT name FROM vector_files"):
        named |= {name, str(Path(name).with_suffix(".keys"))}
    stray = [
        path
        for folder in (ARRAYS, VECTORS)
        for path in sorted((directory / folder).iterdir())
        if path.name not in named and (path.name.endswith(PARTIAL) or not is_held(path))
    ]
    if stray:
        unlink(stray)
