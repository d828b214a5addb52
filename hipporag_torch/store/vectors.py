"""One embedder's vectors of one kind: an append-only file of rows, behind a header that says whose they are.

A row is written once and never again, so readers may map the file while a writer appends. What was appended
but is not yet in the records is a tail that nobody sees; the next writer writes over it. Beside it stands a
file of keys, 16 bytes a row: the digests of the texts, by which a vector is found that no generation names.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor

from hipporag_torch.errors import ConfigError, StoreError
from hipporag_torch.store.disk import digest_of_file, sync_directory, writing

Kind = Literal["passage", "phrase", "fact"]
KINDS: tuple[Kind, ...] = ("passage", "phrase", "fact")
VectorType = Literal["float32", "float16"]
DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float16": torch.float16}

# A page: rows after it are aligned, and the whole file can be mapped as numbers.
_HEADER_BYTES = 4096
_KEY_BYTES = 16
_ROWS_AT_ONCE = 8192


def require_vector_type(vectors: str | None) -> None:
    """Raise `ConfigError` unless it is one, or None."""
    if vectors is not None and vectors not in DTYPES:
        raise ConfigError(f"index.vectors must be one of {', '.join(DTYPES)}, got {vectors!r}")


def text_key(text: str) -> bytes:
    """What a vector is found by; the text itself stands nowhere beside it."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_KEY_BYTES).digest()


@dataclass(frozen=True)
class VectorFile:
    """Rows of `dim` numbers of `dtype` at `path`; `about` is what the header must say."""

    path: Path
    about: str
    dim: int
    dtype: VectorType

    @property
    def row_bytes(self) -> int:
        return self.dim * DTYPES[self.dtype].itemsize

    def offset(self, row: int) -> int:
        """Where a row begins, in bytes."""
        return _HEADER_BYTES + row * self.row_bytes

    @property
    def keys_path(self) -> Path:
        return self.path.with_suffix(".keys")

    def append(self, keys: Sequence[bytes], emb: Float[Tensor, "rows dim"], at: int) -> bytes:
        """Write rows and their keys from row `at` on and make them durable; their digest."""
        content = emb.to(DTYPES[self.dtype]).contiguous().view(torch.uint8).numpy().tobytes()
        with writing(self.path):
            begins = at == 0
            _write_at(self.path, 0 if begins else self.offset(at), self._header() * begins + content)
            _write_at(self.keys_path, at * _KEY_BYTES, b"".join(keys))
            if begins:
                sync_directory(self.path.parent)
        return self.digest(at, at + len(keys))

    def rounded(self, emb: Float32[Tensor, "rows dim"]) -> Float32[Tensor, "rows dim"]:
        """The rows as reading gives them back: exactly, or in half precision and of length 1 again."""
        return _read(emb.to(DTYPES[self.dtype]))

    def read(self, rows: Int64[Tensor, " rows"], finished: int) -> Float32[Tensor, "rows dim"]:
        """The vectors of some rows, all below `finished`: mapped, not copied, if they are the first in order.

        Raises `StoreError` if the file is missing, shorter than `finished` rows or another one.
        """
        return _read(self.stored(rows, finished))

    def stored(self, rows: Int64[Tensor, " rows"], finished: int) -> Float[Tensor, "rows dim"]:
        """As `read`, with every bit as it stands in the file."""
        if not len(rows):
            return torch.empty(0, self.dim, dtype=DTYPES[self.dtype])
        self.check_shape(finished)
        if int(rows.max()) >= finished:
            raise StoreError(
                f"row {int(rows.max()):,} of {self.path} is needed, but only {finished:,} are finished; "
                f"{_WAYS_OUT}"
            )
        dtype = DTYPES[self.dtype]
        skipped = _HEADER_BYTES // dtype.itemsize
        mapped = torch.from_file(
            str(self.path), shared=False, size=skipped + finished * self.dim, dtype=dtype
        )[skipped:].view(finished, self.dim)
        if torch.equal(rows, torch.arange(len(rows))):
            return mapped[: len(rows)]
        return mapped[rows]

    def unnamed(self, named: Int64[Tensor, " rows"], finished: int) -> dict[bytes, int]:
        """Key → row of the finished rows that are not in `named`."""
        spare: Bool[Tensor, " rows"] = torch.ones(finished, dtype=torch.bool)
        spare[named[(named >= 0) & (named < finished)]] = False
        rows = spare.nonzero()[:, 0]
        # A file that is gone or was cut short tells nothing of its rows; `check` reports it.
        if not len(rows) or not self.keys_path.is_file():
            return {}
        keys = self.keys(finished)
        return {keys[row].tobytes(): row for row in rows.tolist() if row < len(keys)}

    def keys(self, finished: int) -> np.ndarray:
        """The keys of the finished rows: (rows,) of 16 bytes each; fewer if the file was cut short."""
        try:
            return np.fromfile(self.keys_path, dtype=f"V{_KEY_BYTES}", count=finished)
        except OSError as error:
            raise StoreError(
                f"the file of keys {self.keys_path} cannot be read: {error.strerror}; {_WAYS_OUT}"
            ) from error

    def digest(self, start: int, stop: int) -> bytes:
        """32 bytes that change with any byte of the rows in [start, stop) and of their keys."""
        rows = digest_of_file(self.path, self.offset(start), self.offset(stop))
        return rows + digest_of_file(self.keys_path, start * _KEY_BYTES, stop * _KEY_BYTES)

    def check_shape(self, finished: int) -> None:
        """Raise `StoreError` unless this file is there, is the right one and has `finished` rows."""
        try:
            size = self.path.stat().st_size
            with self.path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError as error:
            raise StoreError(
                f"the vector file {self.path} cannot be read: {error.strerror}; {_WAYS_OUT}"
            ) from error
        if header != self._header():
            raise StoreError(
                f"{self.path} is not the vector file that belongs there: its header says "
                f"{header.rstrip(bytes(1))[:120]!r}, expected {self.about!r}; {_WAYS_OUT}"
            )
        if size < self.offset(finished):
            raise StoreError(
                f"the vector file {self.path} is cut short: {size:,} bytes, expected at least "
                f"{self.offset(finished):,} for {finished:,} rows; {_WAYS_OUT}"
            )

    def check_keys(self, finished: int) -> None:
        """Raise `StoreError` unless the file of keys is there and has `finished` rows."""
        size = self.keys_path.stat().st_size if self.keys_path.is_file() else 0
        if size < finished * _KEY_BYTES:
            raise StoreError(
                f"the file of keys {self.keys_path} has {size:,} bytes, expected at least "
                f"{finished * _KEY_BYTES:,}; {_WAYS_OUT}"
            )

    def _header(self) -> bytes:
        return self.about.encode("utf-8")[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0")


def _read(rows: Float[Tensor, "rows dim"]) -> Float32[Tensor, "rows dim"]:
    """float32 as it is. Half precision has moved the length from 1 by up to 5e-4: it is put right."""
    if rows.dtype == torch.float32:
        return rows
    emb = rows.float()
    for part in emb.split(_ROWS_AT_ONCE):
        # In float64 no order of summing shows in the result: the same row is the same among any others.
        norms = torch.linalg.vector_norm(part, dim=1, keepdim=True, dtype=torch.float64)
        part /= torch.where(norms == 0, 1.0, norms).float()
    return emb


def _write_at(path: Path, offset: int, content: bytes) -> None:
    # Neither "wb", which would cut off finished rows, nor "ab", which would keep a torn tail.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+b") as file:
        file.seek(offset)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


_WAYS_OUT = (
    "restore it from a backup, or run action=repair with the embedder, which embeds again what is lost"
)
