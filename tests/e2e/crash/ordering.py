"""Whether an operation's steps would outlive a power failure: a kill alone cannot tell."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from .client import Step

_CHANGES = ("write", "pwrite", "writev", "sendfile", "ftruncate", "truncate", "open-truncate", "fallocate")


def unsynced(steps: Iterable[Step], *, scratch: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with the order of some steps; nothing if they are as they should be.

    A file is synced between its last write and its rename, or the operation's end, unless it is removed. A
    directory is synced between the making or renaming of a file in it and the operation's end.
    scratch: how the names end of files that nothing refers to, such as ".partial" and "writer.lock": they
    may be lost, and be a name of what is not synced yet.
    """
    written: dict[str, Step] = {}
    named: dict[str, Step] = {}
    wrong: list[str] = []
    for step in steps:
        if step.call in ("fsync", "fdatasync"):
            written.pop(step.path, None)
            named = {path: by for path, by in named.items() if _parent(path) != step.path}
        elif step.call in _CHANGES:
            written[step.path] = step
        elif step.call in ("rename", "link"):
            if step.path in written:
                if not step.detail.endswith(scratch):
                    wrong.append(f"step {step.number} ({step}) gives a name to what is not synced")
                written[step.detail] = written[step.path]
            if step.call == "rename":
                written.pop(step.path, None)
                named.pop(step.path, None)
            named[step.detail] = step
        elif step.call in ("create", "mkdir", "symlink"):
            named[step.path] = step
        elif step.call == "unlink":
            written.pop(step.path, None)
            named.pop(step.path, None)
    for path, step in written.items():
        if not path.endswith(scratch):
            wrong.append(f"step {step.number} ({step}): {path} is never synced after it")
    for path, step in named.items():
        if not path.endswith(scratch):
            wrong.append(
                f"step {step.number} ({step}): the directory {_parent(path)} is never synced after it"
            )
    return wrong


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)
