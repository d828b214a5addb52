"""Vectors that were paid for once, kept in one SQLite file under a digest of what decides them."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.errors import BackendError, CompatibilityError, ConfigError, InputError
from hipporag_torch.protocols import EmbedderIdentity

# Marks the file as ours, so that no other program's database is ever read or written.
_APPLICATION = int.from_bytes(b"HRTe")
_SCHEMA = 1
# SQLite once allowed 999 parameters in a statement, and builds with that limit are still about.
_KEYS_PER_QUERY = 900
_UNIT_TOLERANCE = 1e-3


class EmbeddingCache:
    """Text, instruction and embedder → vector. Several processes and threads may share the file.

    Every call opens the file for itself and writes in one short transaction, so a process that is
    killed at any point leaves a readable file. The first vector that is put for a key stays. The
    file holds digests and vectors, no text. The rollback journal is used, because SQLite's write-ahead
    log does not work on the network file systems of clusters.

    path: the file, say `<cache dir>/embeddings.sqlite`; it and its folder are made when first needed.
    wait_seconds: how long to wait while another process writes.

    `get` and `put` raise `CompatibilityError` if the file is damaged or is not such a cache, and
    `BackendError` if it cannot be opened or written, or stays locked.
    """

    def __init__(self, path: str | Path, *, wait_seconds: float = 60.0) -> None:
        if not wait_seconds >= 0:
            raise ConfigError(f"cache.wait_seconds must be at least 0, got {wait_seconds}")
        self._path = Path(path).expanduser()
        self._wait_seconds = wait_seconds

    @property
    def path(self) -> Path:
        return self._path

    def get(
        self, identity: EmbedderIdentity, instruction: str, texts: Sequence[str]
    ) -> tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]:
        """Which texts are known, and their vectors exactly as they were put; zeros for the others."""
        keys = _keys(identity, instruction, texts)
        found = torch.zeros(len(keys), dtype=torch.bool)
        rows = torch.zeros(len(keys), identity.dim)
        with self._connection() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                batch = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(batch))
                query = f"SELECT key, vector FROM embeddings WHERE key IN ({marks})"  # noqa: S608
                vectors: dict[bytes, bytes] = dict(connection.execute(query, batch))
                known = [start + offset for offset, key in enumerate(batch) if key in vectors]
                if known:
                    rows[known] = self._decoded([vectors[keys[row]] for row in known], identity.dim)
                    found[known] = True
        return found, rows

    def put(
        self,
        identity: EmbedderIdentity,
        instruction: str,
        texts: Sequence[str],
        rows: Float32[Tensor, "texts dim"],
    ) -> None:
        """Store the vectors of some texts at once; also the way to preload vectors made elsewhere.

        Raises `InputError` unless there is one float32 row of `identity.dim` numbers per text, each of
        length 1 or zero.
        """
        _require_rows(rows, texts, identity.dim)
        flat = rows.detach().cpu().contiguous().numpy().astype("<f4", copy=False).tobytes()
        size = 4 * identity.dim
        vectors = (flat[start : start + size] for start in range(0, len(flat), size))
        entries = list(zip(_keys(identity, instruction, texts), vectors, strict=True))
        with self._connection() as connection:
            # Immediate: two writers then wait for each other, instead of both reading and neither writing.
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", entries)
            connection.execute("COMMIT")

    def _decoded(self, vectors: list[bytes], dim: int) -> Float32[Tensor, "texts dim"]:
        for vector in vectors:
            if len(vector) != 4 * dim:
                raise CompatibilityError(
                    f"the embedding cache {self._path} holds a vector of {len(vector)} bytes, expected "
                    f"{4 * dim} for {dim} float32 numbers; the file is damaged: delete it, it is only a cache"
                )
        flat = np.frombuffer(b"".join(vectors), dtype="<f4").astype(np.float32)
        return torch.from_numpy(flat).view(len(vectors), dim)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level=None: transactions begin and end where they are written out, nowhere else.
            opened = sqlite3.connect(self._path, timeout=self._wait_seconds, isolation_level=None)
            with closing(opened) as connection:
                self._prepare(connection)
                yield connection
        except (sqlite3.OperationalError, OSError) as error:
            raise BackendError(
                f"the embedding cache {self._path} could not be used: {error}; it must be a file that may be "
                "written, on a disk with free space, and not locked for long by another process; "
                "runtime.cache_dir names another folder, runtime.cache=false does without"
            ) from error
        except sqlite3.DatabaseError as error:
            raise CompatibilityError(
                f"the embedding cache {self._path} cannot be read: {error}; expected an SQLite file that "
                "this library wrote. Delete it, it is only a cache, or set another runtime.cache_dir"
            ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if _marks(connection) == (_APPLICATION, _SCHEMA):
            return
        # Look again under the lock: another process may be making the same file.
        connection.execute("BEGIN IMMEDIATE")
        marks = _marks(connection)
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        if marks == (0, 0) and empty:
            connection.execute("CREATE TABLE embeddings (key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        elif marks != (_APPLICATION, _SCHEMA):
            raise CompatibilityError(
                f"{self._path} is an SQLite file, but not an embedding cache of this version: its marks "
                f"are {marks}, expected {(_APPLICATION, _SCHEMA)}; delete it, or set "
                "runtime.cache_dir to another folder"
            )
        connection.execute("COMMIT")


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    return application, schema


def _keys(identity: EmbedderIdentity, instruction: str, texts: Sequence[str]) -> list[bytes]:
    """32 bytes a text. The instructions of other roles do not matter to a vector, so they are left out."""
    made_by = [
        identity.name,
        identity.weights,
        identity.dim,
        identity.pooling,
        identity.max_tokens,
        instruction,
    ]
    # JSON escapes control characters: the zero byte ends it, so no two inputs can run into each other.
    prefix = hashlib.sha256(json.dumps(made_by).encode() + b"\0")
    keys = []
    for text in texts:
        key = prefix.copy()
        key.update(text.encode("utf-8"))
        keys.append(key.digest())
    return keys


def _require_rows(rows: Tensor, texts: Sequence[str], dim: int) -> None:
    if rows.shape != (len(texts), dim) or rows.dtype != torch.float32:
        raise InputError(
            f"vectors to be cached must be float32 of shape ({len(texts)}, {dim}), one row per text, "
            f"got {rows.dtype} of shape {tuple(rows.shape)}"
        )
    norms = torch.linalg.vector_norm(rows, dim=1)
    # Written so that NaN, which equals nothing, is refused too.
    wrong = ~((norms == 0) | ((norms - 1).abs() < _UNIT_TOLERANCE))
    if wrong.any():
        first = int(wrong.nonzero()[0, 0])
        raise InputError(
            f"the vector to be cached for text {first} ({texts[first]!r:.80}) has length {norms[first]:.6g}, "
            "expected 1, or 0 for a text with nothing in it; normalise the rows first"
        )
