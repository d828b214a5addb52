"""Dropping what deletions left: rows that died, vectors that no generation names, and every byte of both."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import torch

from hipporag_torch.errors import LockedError, StoreError
from hipporag_torch.protocols import Progress
from hipporag_torch.store import records
from hipporag_torch.store.arrays import VectorRows, write_arrays
from hipporag_torch.store.database import snapshot as one_moment
from hipporag_torch.store.database import transaction
from hipporag_torch.store.disk import digest_of_file, publish, unlink
from hipporag_torch.store.embedders import (
    ARRAYS,
    EmbedderRow,
    advance_embedder,
    damaged_segments,
    drop_embedder,
    read_embedders,
    read_vector_rows,
    vector_file,
)
from hipporag_torch.store.locks import holders, wait_until_free
from hipporag_torch.store.seal import seal
from hipporag_torch.store.snapshot import Snapshot, current_generation, read_options, read_snapshot
from hipporag_torch.store.vectors import KINDS, Kind, text_key
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Role

Segments = list[tuple[int, int, bytes]]
"""Runs of rows, [start, stop), with their digests."""

# Rows that are copied, and make a segment, at once.
_ROWS_AT_ONCE = 8192


def require_no_readers(directory: Path, connection: sqlite3.Connection, wait_seconds: float | None) -> None:
    """Wait for readers of older generations; raise `LockedError` that names those that stay."""
    named = {row.arrays for row in read_embedders(connection)}
    older = [path for path in sorted((directory / ARRAYS).iterdir()) if path.name not in named]
    held = wait_until_free(older, wait_seconds)
    if held:
        who = "; ".join(
            f"generation {path.name.partition('-')[0]} by process "
            f"{', '.join(map(str, holders(path))) or 'unknown'}"
            for path in held
        )
        raise LockedError(
            f"older generations of {directory} are still being read ({who}); let these processes refresh or "
            "close the index, then compact again"
        )


def removed_texts(connection: sqlite3.Connection, text: TextOptions) -> dict[Role, list[str]]:
    """What `compact` will erase, by role: the texts of dead rows that no live row has."""
    queries: dict[Role, str] = {
        "passage": "SELECT text FROM passages WHERE died IS NOT NULL EXCEPT "
        "SELECT text FROM passages WHERE died IS NULL",
        "phrase": "SELECT text FROM phrases WHERE died IS NOT NULL EXCEPT "
        "SELECT text FROM phrases WHERE died IS NULL",
    }
    texts: dict[Role, list[str]] = {
        role: [row[0] for row in connection.execute(query)] for role, query in queries.items()
    }
    facts = connection.execute(
        "SELECT subject, predicate, object FROM facts WHERE died IS NOT NULL EXCEPT "
        "SELECT subject, predicate, object FROM facts WHERE died IS NULL"
    )
    texts["fact"] = [text.fact_text(records.fact_of_row(*row)) for row in facts]
    return texts


def compact(directory: Path, connection: sqlite3.Connection, progress: Progress) -> dict[str, int]:
    """Write the live vectors and arrays to new files, publish them and delete the rest; what was dropped.

    An embedder that is behind keeps its vectors of what is alive, for when it is reembedded. The caller
    holds the writer lock, has seen that nobody reads an older generation, and deletes unnamed files after.
    """
    generation = current_generation(connection) + 1
    dropped = {}
    moved: list[tuple[EmbedderRow, dict[Kind, tuple[str, Segments]]]] = []
    rows = read_embedders(connection)
    for number, row in enumerate(rows):
        dropped["vectors"] = dropped.get("vectors", 0)
        if row.generation == generation - 1:
            with one_moment(connection):
                snapshot = read_snapshot(directory, connection, row, write=True)
            try:
                files, lost = _copy_vectors(directory, connection, row, snapshot.vector_rows, generation)
                moved.append((_copy_arrays(directory, row, snapshot, generation), files))
            finally:
                snapshot.close()
        else:
            files, lost = _copy_vectors(
                directory, connection, row, _rows_of_live_texts(directory, connection, row), generation
            )
            moved.append((replace(row, generation=-1, arrays="", arrays_bytes=0, arrays_digest=b""), files))
        dropped["vectors"] += lost
        progress("compact", number + 1, len(rows))
    with transaction(connection):
        # What was staged of passages that a commit had removed since would keep their facts.
        connection.execute(
            "DELETE FROM staged_extractions WHERE passage IN (SELECT key FROM passages "
            "WHERE died IS NOT NULL EXCEPT SELECT key FROM passages WHERE died IS NULL)"
        )
        for table in records.COLUMNS:
            dropped[table] = connection.execute(
                f"DELETE FROM {table} WHERE died IS NOT NULL"  # noqa: S608
            ).rowcount
        for row, files in moved:
            _record_files(connection, row, files)
        connection.execute(
            "INSERT INTO generations SELECT ?, 'compact', passages, sources, extractions, phrases, facts "
            "FROM generations WHERE number = ?",
            (generation, generation - 1),
        )
        connection.execute("DELETE FROM generations WHERE number < ?", (generation,))
        seal(connection)
    return {name: count for name, count in dropped.items() if count}


def vacuum(connection: sqlite3.Connection) -> None:
    """Give back the pages of deleted rows. Atomic, and to be repeated if it was interrupted."""
    connection.execute("VACUUM")


def _copy_vectors(
    directory: Path, connection: sqlite3.Connection, row: EmbedderRow, used: VectorRows, generation: int
) -> tuple[dict[Kind, tuple[str, Segments]], int]:
    """New files with the rows of `used` in their order: name and segments by kind, and how many were left."""
    copied: dict[Kind, tuple[str, Segments]] = {}
    lost = 0
    for kind, held in read_vector_rows(directory, connection, row).items():
        # Copied, damage would get a digest that fits.
        if len(used[kind]) and damaged_segments(connection, row, kind, held, used[kind]):
            raise StoreError(
                f"the {kind} vectors of {row.identity.name} in {directory} are damaged; run action=repair "
                "with that embedder, then compact again. The index is as it was"
            )
        # Not the name of a file that a change before this one, of the same number, was interrupted in.
        name = f"{row.id}-{kind}-{generation}-compact.rows"
        new = vector_file(directory, row, kind, name)
        # What an interrupted compaction left: nothing names it.
        unlink([path for path in (new.path, new.keys_path) if path.exists()])
        # Rows that texts share are copied once for each.
        segments = []
        keys = held.file.keys(held.finished)
        for start in range(0, len(used[kind]), _ROWS_AT_ONCE):
            part = used[kind][start : start + _ROWS_AT_ONCE]
            stop = start + len(part)
            digest = new.append(
                [keys[i].tobytes() for i in part.tolist()], held.file.stored(part, held.finished), start
            )
            segments.append((start, stop, digest))
        if segments:
            copied[kind] = (name, segments)
        lost += held.finished - len(torch.unique(used[kind]))
    return copied, lost


def _copy_arrays(directory: Path, row: EmbedderRow, snapshot: Snapshot, generation: int) -> EmbedderRow:
    path = directory / ARRAYS / f"{generation}-{row.id}.safetensors"
    in_order: VectorRows = {kind: torch.arange(len(snapshot.vector_rows[kind])) for kind in KINDS}
    about = row.about(generation)
    publish(path, lambda partial: write_arrays(partial, snapshot.index, in_order, about=about))
    return replace(
        row,
        generation=generation,
        arrays=path.name,
        arrays_bytes=path.stat().st_size,
        arrays_digest=digest_of_file(path),
    )


def _rows_of_live_texts(directory: Path, connection: sqlite3.Connection, row: EmbedderRow) -> VectorRows:
    """The rows of an embedder that is behind whose texts are alive, ascending."""
    options, _ = read_options(connection)
    texts = {
        "passage": [t for (t,) in connection.execute("SELECT text FROM passages WHERE died IS NULL")],
        "phrase": [t for (t,) in connection.execute("SELECT text FROM phrases WHERE died IS NULL")],
        "fact": [
            options.fact_text(records.fact_of_row(*t))
            for t in connection.execute("SELECT subject, predicate, object FROM facts WHERE died IS NULL")
        ],
    }
    nothing = torch.empty(0, dtype=torch.int64)
    found: VectorRows = dict.fromkeys(KINDS, nothing)
    for kind, held in read_vector_rows(directory, connection, row).items():
        spare = held.file.unnamed(nothing, held.finished)
        alive = {spare[key] for text in texts[kind] if (key := text_key(text)) in spare}
        rows = torch.tensor(sorted(alive), dtype=torch.int64)
        if len(rows):
            for start, stop in damaged_segments(connection, row, kind, held, rows):
                rows = rows[(rows < start) | (rows >= stop)]
        found[kind] = rows
    return found


def _record_files(
    connection: sqlite3.Connection,
    row: EmbedderRow,
    files: dict[Kind, tuple[str, Segments]],
) -> None:
    connection.execute("DELETE FROM segments WHERE embedder = ?", (row.id,))
    connection.execute("DELETE FROM vector_files WHERE embedder = ?", (row.id,))
    for kind, (name, segments) in files.items():
        finished = segments[-1][1]
        connection.execute("INSERT INTO vector_files VALUES (?, ?, ?, ?)", (row.id, kind, name, finished))
        connection.executemany(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?)",
            ((row.id, kind, start, stop, digest) for start, stop, digest in segments),
        )
    if not files and row.generation < 0:
        drop_embedder(connection, row)
        return
    advance_embedder(connection, row)
