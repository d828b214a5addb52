"""Steps that a crash cannot tear: what is named is whole, and what is whole is on the disk."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hipporag_torch.errors import StoreError

_BLOCK = 1 << 20


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's errors of a block that writes to `path` into `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} could not be written: {error.strerror or error}; check that the directory may be "
            "written and has free space. Nothing is lost: the index opens as it was before, or after"
        ) from error


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable: a file that was renamed or unlinked stays so."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file, and give it its name only when it is whole and on the disk."""
    partial = path.with_name(path.name + PARTIAL)
    with writing(path):
        write(partial)
        sync_file(partial)
        os.replace(partial, path)
        sync_directory(path.parent)


PARTIAL = ".partial"
"""Ends the names of files that nothing refers to yet; what a crash leaves of them can go."""


def unlink(paths: list[Path]) -> None:
    """Remove files durably; one that is gone already is no error."""
    for path in paths:
        with writing(path):
            path.unlink(missing_ok=True)
    for directory in sorted({path.parent for path in paths}):
        with writing(directory):
            sync_directory(directory)


def digest_of_file(path: Path, start: int = 0, stop: int | None = None) -> bytes:
    """16 bytes that change with any byte of `path` in [start, stop), the end by default."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        file.seek(start)
        left = None if stop is None else stop - start
        while left is None or left > 0:
            block = file.read(_BLOCK if left is None else min(_BLOCK, left))
            if not block:
                break
            digest.update(block)
            left = None if left is None else left - len(block)
    return digest.digest()
