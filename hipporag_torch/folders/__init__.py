"""A folder of text files, kept in step with a memory: each file is a source.

    plan = plan_folder(memory, "notes")             # reads the files, asks no model, writes nothing
    report = apply_plan(memory, plan, progress)     # one commit for each file that changed
    report = sync_folder(memory, "notes", prune=True)   # both

**Names.** A file's source_id is `ROOT/PATH`: PATH is relative to the folder, with `/` on every system; ROOT
is the folder's name and eight hex digits of a hash of its absolute path (`notes-3fa9c2d1/plans/2024.md`), so
that two folders do not collide, and the same folder has the same id in every process. `name="notes"` states a
ROOT instead, for folders that move or stand elsewhere on another machine. `source_id_of(root, path)` says it.

**Metadata.** Every passage's source has `root`, `path`, `heading`, `chunk` (its number in the file), `start`
and `end` (characters of the file's text as decoded, line ends as they are, without a byte order mark) and
`mtime` (UTC, of the content that was indexed: a file that is only touched stays as it is).
"""

from hipporag_torch.folders.plan import plan_folder
from hipporag_torch.folders.reports import (
    Action,
    FileOutcome,
    FilePlan,
    FolderPlan,
    FolderReport,
    SkipKind,
    Status,
)
from hipporag_torch.folders.roots import root_id, source_id_of
from hipporag_torch.folders.selection import GLOBS, MAX_BYTES
from hipporag_torch.folders.sync import apply_plan, sync_folder

__all__ = [
    "GLOBS",
    "MAX_BYTES",
    "Action",
    "FileOutcome",
    "FilePlan",
    "FolderPlan",
    "FolderReport",
    "SkipKind",
    "Status",
    "apply_plan",
    "plan_folder",
    "root_id",
    "source_id_of",
    "sync_folder",
]
