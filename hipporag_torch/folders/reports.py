"""What a folder holds against what a memory holds of it, and what a sync did about it. All frozen."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from hipporag_torch.chat import Usage

Action = Literal["added", "unchanged", "replaced", "retried", "removed", "missing", "skipped"]
"""What a sync is to do with a path. `added`: the memory holds nothing of it. `unchanged`: it holds just what
the file gives. `replaced`: it holds something else. `retried`: it holds the same, but some of it could not be
extracted, and that may heal. `missing`: it holds text of a file that is not there any more; with pruning that
is `removed`. `skipped`: the file or folder is not to be indexed."""

Status = Action | Literal["failed", "left"]
"""What became of a path: as planned, or `failed` (nothing of it was changed), or `left`: the sync stopped
before it came there."""

SkipKind = Literal[
    "hidden",
    "dependencies",
    "link",
    "name",
    "not_a_file",
    "too_large",
    "binary",
    "encoding",
    "empty",
    "unreadable",
]
"""Why a path is not indexed. `dependencies`: a folder of installed or built things. `link`: it leads out of
the folder, nowhere, or to what is read under another path. `name`: it is not valid Unicode. `empty`: nothing
but whitespace. `unreadable`: the system refuses, so nobody knows whether what the memory holds is right."""

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class FilePlan:
    """What is to be done with one path.

    path: relative to the folder, with `/`; that of a folder (only skipped ones are listed) ends with `/`.
    reason: why it is skipped or removed; else empty. digest: SHA-256 of the file's bytes, empty if they were
    not read. passages: how many it gives; passages_new: those that the memory lacks and no file before it
    brings; passages_left: those that its source holds now and will not hold any more; gives: whether another
    file takes over some of these.
    """

    path: str
    source_id: str
    action: Action
    reason: str = ""
    kind: SkipKind | None = None
    digest: str = ""
    passages: int = 0
    passages_new: int = 0
    passages_left: int = 0
    gives: bool = False


@dataclass(frozen=True)
class FolderPlan:
    """What a sync would do, worked out without asking a model and without writing anything.

    files: by path. passages_new, passages_retried: what would be extracted; extractor_calls and usage are the
    estimate of that, as in `ChangePlan`. passages_removed: how many no source would hold any more. unmatched:
    files that no glob names; they are not listed.
    """

    root: str
    root_id: str
    globs: tuple[str, ...]
    max_bytes: int
    prune: bool
    files: tuple[FilePlan, ...] = ()
    passages_new: int = 0
    passages_retried: int = 0
    passages_removed: int = 0
    extractor_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    unmatched: int = 0

    @property
    def counts(self) -> Mapping[Action, int]:
        """How many paths there are of each action; those that do not occur are left out."""
        return _counts(file.action for file in self.files)

    @property
    def changes(self) -> tuple[FilePlan, ...]:
        """The paths that the memory would be changed for, in the order of work."""
        todo = (f for f in self.files if f.action in ("added", "retried", "replaced", "removed"))
        return tuple(sorted(todo, key=lambda file: (file.action == "removed", file.gives)))

    @property
    def digest(self) -> str:
        """Names the plan: equal digests mean the same changes by the same contents (64 hex digits)."""
        changes = [(file.source_id, file.action, file.digest) for file in self.changes]
        told = json.dumps([self.root, self.root_id, self.prune, sorted(changes)])
        return hashlib.sha256(told.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class FileOutcome:
    """What became of one path.

    passages: how many its source holds now, if it was read. Of these `passages_added` were new to the memory
    and `passages_failed` could not be extracted: they are found by their vectors alone, and tried again by
    the next sync unless that cannot help. passages_removed: what went out of the memory with its old text.
    """

    path: str
    source_id: str
    status: Status
    reason: str = ""
    kind: SkipKind | None = None
    passages: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    passages_failed: int = 0


@dataclass(frozen=True)
class FolderReport:
    """What a sync did. `files` are by path; `usage` is what language models were asked for it.

    stopped: why it ended before its last file, else empty; the same call again goes on from there.
    """

    root: str
    root_id: str
    files: tuple[FileOutcome, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    stopped: str = ""
    unmatched: int = 0

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many paths there are of each status; those that do not occur are left out."""
        return _counts(file.status for file in self.files)

    @property
    def ok(self) -> bool:
        """Whether all that was planned was done, whatever was skipped on purpose."""
        return not self.stopped and not self.counts.keys() & {"failed", "left"}

    @property
    def passages_added(self) -> int:
        return sum(file.passages_added for file in self.files)

    @property
    def passages_removed(self) -> int:
        return sum(file.passages_removed for file in self.files)

    @property
    def passages_failed(self) -> int:
        return sum(file.passages_failed for file in self.files)


def _counts(names: Iterable[Name]) -> dict[Name, int]:
    return dict(sorted(Counter(names).items()))
