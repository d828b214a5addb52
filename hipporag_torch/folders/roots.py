"""How a synced folder and its files are named in a memory."""

import hashlib
import os
from pathlib import Path

from hipporag_torch.errors import InputError
from hipporag_torch.types import require_text


def resolved_root(root: str | Path) -> Path:
    """The folder's absolute path, links followed. Raises `InputError` if it is not a folder."""
    try:
        path = Path(root).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"the folder {str(root)!r} cannot be reached: {error}; give one that exists"
        ) from error
    if not path.is_dir():
        raise InputError(f"{str(root)!r} is not a folder; give the folder that holds the files")
    return path


def root_id(root: str | Path, name: str | None = None) -> str:
    """`name`, or the folder's own name and eight hex digits of a hash of its absolute path.

    Raises `InputError` for a name that is blank or holds a `/`, and for a folder that is not there.
    """
    if name is not None:
        if "/" in require_text(name, "the folder's name"):
            raise InputError(
                f"the folder's name must not hold a '/', got {name!r}; leave it out, or use another"
            )
        return name
    path = resolved_root(root)
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    shown = path.name.encode("utf-8", "replace").decode("utf-8").strip() or "folder"
    return f"{shown}-{digest}"


def source_id_of(root: str | Path, path: str, name: str | None = None) -> str:
    """The source_id of the file at `path`, relative to `root` and with `/`."""
    return f"{root_id(root, name)}/{path}"
