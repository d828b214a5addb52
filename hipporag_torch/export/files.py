"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.errors import InputError


@dataclass(frozen=True)
class Exported:
    """What an export wrote. `left_out` counts the passages that its format has no place for."""

    paths: tuple[Path, ...]
    left_out: int = 0


@contextmanager
def drafts(paths: Sequence[Path], *, overwrite: bool) -> Iterator[tuple[Path, ...]]:
    """A hidden draft to write beside each path; all take their places once the block has ended well.

    The folders are made if need be. Where the block fails, the paths are as they were and no draft stays.
    Raises `InputError`, before anything is written, for a path that is a folder, for one whose folder is
    a file, and, without `overwrite`, for one that exists.
    """
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder, expected the name of a file to write; add a file name")
        if path.exists() and not overwrite:
            raise InputError(f"{path} exists already; give another path, or overwrite=True to replace it")
        _make_folder(path.parent)
    written = tuple(path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in paths)
    try:
        yield written
        for draft, path in zip(written, paths, strict=True):
            os.replace(draft, path)
    finally:
        for draft in written:
            draft.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(
            f"cannot make the folder {folder}: a file stands in its place; give another path"
        ) from error
