"""Vectors that were paid for once, kept in one SQLite file under a digest of what decides them."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.embedders.turns import turn
from hipporag_torch.errors import CompatibilityError, InputError
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.sqlite_cache import KEYS_PER_QUERY, CacheFile

_TABLES = ("CREATE TABLE embeddings (key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)",)
_UNIT_TOLERANCE = 1e-3


class EmbeddingCache:
    """Text, instruction and embedder → vector. Several processes and threads may share the file.

    A process that is killed at any point leaves a readable file. The first vector that is put for a key
    stays. The file holds digests and vectors, no text.

    path: the file, say `<cache dir>/embeddings.sqlite`; it and its folder are made when first needed.
    wait_seconds: how long to wait while another process writes.

    `get` and `put` raise `CompatibilityError` if the file is damaged or is not such a cache, and
    `BackendError` if it cannot be opened or written, or stays locked.
    """

    def __init__(self, path: str | Path, *, wait_seconds: float = 60.0) -> None:
        self._file = CacheFile(
            path,
            noun="embedding cache",
            application=b"HRTe",
            schema=1,
            tables=_TABLES,
            wait_seconds=wait_seconds,
        )

    @property
    def path(self) -> Path:
        return self._file.path

    def get(
        self, identity: EmbedderIdentity, instruction: str, texts: Sequence[str]
    ) -> tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]:
        """Which texts are known, and their vectors exactly as they were put; zeros for the others."""
        keys = _keys(identity, instruction, texts)
        found = torch.zeros(len(keys), dtype=torch.bool)
        rows = torch.zeros(len(keys), identity.dim)
        with self._file.connection() as connection:
            for start in range(0, len(keys), KEYS_PER_QUERY):
                batch = keys[start : start + KEYS_PER_QUERY]
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
        with self._file.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", entries)

    def turn(
        self, identity: EmbedderIdentity, instruction: str, waiting: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """A block that only one process at a time is in, of those that make the same vectors.

        What it lacks is then not embedded twice. The lock is a file beside the cache, named by what decides
        a vector; `waiting` is called if another process holds it. Entering raises `BackendError` if it
        cannot be locked.
        """
        name = f"{self.path.stem}.{_made_by(identity, instruction).hexdigest()[:16]}.lock"
        return turn(self.path.with_name(name), waiting)

    def drop(self, identity: EmbedderIdentity, instruction: str, texts: Sequence[str]) -> int:
        """Delete the vectors of some texts, and their bytes from the file; how many there were."""
        if not self.path.exists():
            return 0
        keys = _keys(identity, instruction, texts)
        with self._file.writing() as connection:
            deleted = connection.executemany("DELETE FROM embeddings WHERE key = ?", ((key,) for key in keys))
            return deleted.rowcount

    def _decoded(self, vectors: list[bytes], dim: int) -> Float32[Tensor, "texts dim"]:
        for vector in vectors:
            if len(vector) != 4 * dim:
                raise CompatibilityError(
                    f"the embedding cache {self.path} holds a vector of {len(vector)} bytes, expected "
                    f"{4 * dim} for {dim} float32 numbers; the file is damaged: delete it, it is only a cache"
                )
        flat = np.frombuffer(b"".join(vectors), dtype="<f4").astype(np.float32)
        return torch.from_numpy(flat).view(len(vectors), dim)


def _keys(identity: EmbedderIdentity, instruction: str, texts: Sequence[str]) -> list[bytes]:
    """32 bytes a text."""
    prefix = _made_by(identity, instruction)
    keys = []
    for text in texts:
        key = prefix.copy()
        key.update(text.encode("utf-8"))
        keys.append(key.digest())
    return keys


def _made_by(identity: EmbedderIdentity, instruction: str) -> "hashlib._Hash":
    """What decides a vector beside its text; the instructions of other roles do not matter to it."""
    made_by = [
        identity.name,
        identity.weights,
        identity.dim,
        identity.pooling,
        identity.max_tokens,
        instruction,
    ]
    # JSON escapes control characters: the zero byte ends it, so no two inputs can run into each other.
    return hashlib.sha256(json.dumps(made_by).encode() + b"\0")


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
