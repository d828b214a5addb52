"""A file's text, or why it has none that can be indexed."""

import hashlib
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hipporag_torch.folders.selection import Skipped, too_large


@dataclass(frozen=True)
class FileText:
    """text: decoded, line ends as they are. digest: SHA-256 of the bytes. mtime: ISO 8601, UTC, seconds."""

    text: str
    digest: str
    mtime: str


def read_file(root: Path, path: str, *, max_bytes: int) -> FileText | Skipped:
    """The file at `path` below `root`, a resolved path. Never what lies outside of it."""
    try:
        content, status = _content(root, path, max_bytes)
    except FileNotFoundError:
        return Skipped(path, "unreadable", "it is not there any more")
    except OSError as error:
        return Skipped(path, "unreadable", f"it cannot be read: {error.strerror}")
    if isinstance(content, Skipped):
        return content
    if b"\0" in content:
        return Skipped(path, "binary", "it holds zero bytes, so it is no text (in UTF-8)")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Skipped(
            path, "encoding", f"it is not UTF-8: byte {content[error.start]:#04x} at offset {error.start}"
        )
    if not text.strip():
        return Skipped(path, "empty", "nothing but whitespace")
    mtime = datetime.fromtimestamp(int(status.st_mtime), UTC).isoformat()
    return FileText(text, hashlib.sha256(content).hexdigest(), mtime)


def _content(root: Path, path: str, max_bytes: int) -> tuple[bytes | Skipped, os.stat_result]:
    # The resolved path is opened without following a link that took its place since; a pipe does not block.
    real = Path(os.path.realpath(root / path))
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not real.is_relative_to(root):
        return Skipped(path, "link", "a link that leads out of the folder"), os.lstat(root)
    opened = os.open(real, flags | getattr(os, "O_BINARY", 0))
    try:
        before = os.fstat(opened)
        if not stat.S_ISREG(before.st_mode):
            return Skipped(path, "not_a_file", "it is not a file any more"), before
        with os.fdopen(opened, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
        after = os.fstat(opened)
    finally:
        os.close(opened)
    if len(content) > max_bytes:
        return Skipped(path, "too_large", too_large(after.st_size, max_bytes)), after
    if len(content) != after.st_size or before.st_mtime_ns != after.st_mtime_ns:
        return Skipped(path, "unreadable", "it was written to while it was read"), after
    return content, after
