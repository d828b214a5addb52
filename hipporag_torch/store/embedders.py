"""The embedders that an index keeps vectors of."""

import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from jaxtyping import Int64
from torch import Tensor

from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.store.identity import embedder_from_json, embedder_to_json
from hipporag_torch.store.records import legible
from hipporag_torch.store.vectors import Kind, VectorFile, VectorType

ARRAYS, VECTORS = "arrays", "vectors"
"""The folders of an index directory."""

NOT_YET = -1
"""The generation of an embedder whose vectors are still in the making."""


@dataclass(frozen=True)
class EmbedderRow:
    """One embedder's row of the records; `settings` is what a caller left there to build it again."""

    id: int
    identity: EmbedderIdentity
    settings: str
    dtype: VectorType
    main: bool
    generation: int
    arrays: str
    arrays_bytes: int
    arrays_digest: bytes

    def about(self, generation: int) -> dict[str, object]:
        """What the file of arrays must say of itself."""
        return {"embedder": self.id, "generation": generation, "identity": identity_digest(self.identity)}


def identity_digest(identity: EmbedderIdentity) -> str:
    return hashlib.sha256(embedder_to_json(identity).encode("utf-8")).hexdigest()[:32]


def read_embedders(connection: sqlite3.Connection) -> list[EmbedderRow]:
    """All of them, in the order in which they came."""
    rows = connection.execute(
        "SELECT id, identity, settings, dtype, main, generation, arrays, arrays_bytes, arrays_digest "
        "FROM embedders ORDER BY id"
    )
    with legible("the index's embedders"):
        return [
            EmbedderRow(number, embedder_from_json(identity), settings, dtype, bool(main), *rest)
            for number, identity, settings, dtype, main, *rest in rows
        ]


def insert_embedder(
    connection: sqlite3.Connection, identity: EmbedderIdentity, settings: str, dtype: VectorType
) -> EmbedderRow:
    """Register an embedder that has no vectors yet."""
    (number,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM embedders").fetchone()
    row = EmbedderRow(number, identity, settings, dtype, False, NOT_YET, "", 0, b"")
    connection.execute(
        "INSERT INTO embedders VALUES (?, ?, ?, ?, 0, ?, '', 0, x'')",
        (number, embedder_to_json(identity), settings, dtype, NOT_YET),
    )
    return row


def advance_embedder(connection: sqlite3.Connection, row: EmbedderRow) -> None:
    """Let an embedder take part in the generation that its row names, and be the main one if that says so."""
    if row.main:
        connection.execute("UPDATE embedders SET main = (id = ?)", (row.id,))
    connection.execute(
        "UPDATE embedders SET settings = ?, generation = ?, arrays = ?, arrays_bytes = ?, arrays_digest = ? "
        "WHERE id = ?",
        (row.settings, row.generation, row.arrays, row.arrays_bytes, row.arrays_digest, row.id),
    )


def drop_others(connection: sqlite3.Connection, kept: EmbedderRow) -> None:
    """Drop other rows of the same embedder: those with its vectors in another precision."""
    for row in read_embedders(connection):
        if row.identity == kept.identity and row.id != kept.id:
            drop_embedder(connection, row)


def drop_embedder(connection: sqlite3.Connection, row: EmbedderRow) -> None:
    """Forget an embedder; its files are deleted when the records no longer name them."""
    for table, column in (("embedders", "id"), ("vector_files", "embedder"), ("segments", "embedder")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (row.id,))  # noqa: S608


@dataclass(frozen=True)
class VectorRow:
    """One vector file and how many of its rows are finished."""

    file: VectorFile
    finished: int


def damaged_segments(
    connection: sqlite3.Connection,
    embedder: EmbedderRow,
    kind: Kind,
    held: VectorRow,
    rows: Int64[Tensor, " rows"] | None = None,
) -> list[tuple[int, int]]:
    """The segments, of all or of those that hold some of `rows`, whose digest does not fit.

    Raises `StoreError` if a file is missing, cut short or another one.
    """
    held.file.check_shape(held.finished)
    held.file.check_keys(held.finished)
    segments = connection.execute(
        "SELECT start, stop, digest FROM segments WHERE embedder = ? AND kind = ? ORDER BY start",
        (embedder.id, kind),
    )
    ordered = None if rows is None else rows.sort().values
    return [
        (start, stop)
        for start, stop, digest in segments.fetchall()
        if (
            ordered is None or len(set(torch.searchsorted(ordered, torch.tensor([start, stop])).tolist())) > 1
        )
        and held.file.digest(start, stop) != digest
    ]


def vector_file(directory: Path, embedder: EmbedderRow, kind: Kind, name: str) -> VectorFile:
    identity = embedder.identity
    about = (
        f"hipporag_torch vectors 1: {kind}s of {identity_digest(identity)}, {identity.dim} {embedder.dtype}"
    )
    return VectorFile(directory / VECTORS / name, about, identity.dim, embedder.dtype)


def read_vector_rows(
    directory: Path, connection: sqlite3.Connection, embedder: EmbedderRow
) -> dict[Kind, VectorRow]:
    """The vector files of an embedder by kind; a kind of which nothing was ever written has none."""
    rows = connection.execute(
        "SELECT kind, name, finished FROM vector_files WHERE embedder = ?", (embedder.id,)
    )
    return {
        kind: VectorRow(vector_file(directory, embedder, cast(Kind, kind), name), finished)
        for kind, name, finished in rows
    }
