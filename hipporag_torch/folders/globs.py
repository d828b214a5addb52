"""Patterns that name files: `*.md` anywhere, `docs/**/*.rst` from the folder's top."""

import re
from collections.abc import Sequence

from hipporag_torch.errors import InputError
from hipporag_torch.types import require_text


class Globs:
    """Whether any of `patterns` names a path.

    `*` and `?` stand for what holds no `/`, `**/` for any number of folders, `[abc]` and `[!abc]` for one
    character. A pattern without `/` names files at every depth. Capitals do not matter. Raises `InputError`
    for no patterns, and for one that is blank, absolute or climbs with `..`.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        if isinstance(patterns, str):
            raise InputError(f"globs must be a list of patterns, got the string {patterns!r}; [{patterns!r}]")
        if not patterns:
            raise InputError("there are no globs, so no file would be indexed; give one, such as *.md")
        self.patterns = tuple(_checked(pattern) for pattern in patterns)
        either = "|".join(_translated(pattern) for pattern in self.patterns)
        self._regex = re.compile(either, re.IGNORECASE | re.DOTALL)

    def match(self, path: str) -> bool:
        """path: relative, with `/`."""
        return self._regex.fullmatch(path) is not None


def _checked(pattern: str) -> str:
    require_text(pattern, "one of the globs")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise InputError(f"a glob must stay inside the folder, got {pattern!r}; give it relative, as *.md")
    return pattern


def _translated(pattern: str) -> str:
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    # A class is a `[`, perhaps a `!`, one character of any kind, and all up to the next `]`.
    parts = re.findall(r"\*\*/|\*+|\?|\[!?.[^\]]*\]|.", pattern, re.DOTALL)
    return "(?:" + "".join(_part(part) for part in parts) + ")"


def _part(part: str) -> str:
    if part == "**/":
        return r"(?:[^/]+/)*"
    if part == "?" or not part.strip("*"):
        return {"?": r"[^/]", "*": r"[^/]*"}.get(part, r".*")
    if len(part) > 1:
        inside = re.sub(r"([\\\[&~|^])", r"\\\1", part[1:-1].removeprefix("!"))
        return f"(?!/)[{'^' if part[1] == '!' else ''}{inside}]"
    return re.escape(part)
