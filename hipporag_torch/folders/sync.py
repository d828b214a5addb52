"""Doing what a plan says, file by file."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hipporag_torch.chat import Usage
from hipporag_torch.chunkers import StructureChunker
from hipporag_torch.errors import BackendError, BudgetError, ExtractionError, InputError
from hipporag_torch.folders.holdings import holdings
from hipporag_torch.folders.plan import document_of, plan_folder
from hipporag_torch.folders.reading import read_file
from hipporag_torch.folders.reports import FileOutcome, FilePlan, FolderPlan, FolderReport, Status
from hipporag_torch.folders.selection import GLOBS, MAX_BYTES, Skipped
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.protocols import Chunker, Progress, no_progress
from hipporag_torch.types import Document, OnError

# One file may upset a backend; when several do in a row, it is the backend.
_MAX_BACKEND_ERRORS = 3


def sync_folder(
    memory: HippoRAG,
    root: str | Path,
    *,
    globs: Sequence[str] = GLOBS,
    prune: bool = False,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
    chunker: Chunker | None = None,
    on_error: OnError = "quarantine",
    progress: Progress = no_progress,
) -> FolderReport:
    """Bring `memory` in step with the text files below `root`: `plan_folder`, then `apply_plan`.

    globs: which files, see `Globs`. Hidden files and folders, folders of dependencies and builds, binaries,
        files over `max_bytes`, what is not UTF-8 and links that lead out are skipped, each with a reason.
    prune: take out what the memory holds of files that are gone, or are now skipped for what they are. Files
        that no glob names, and those that cannot be read, stay as they are.
    name: what the folder is called in source_ids instead of its own id.
    chunker: how files are cut into passages, `StructureChunker()` by default, whatever the memory's own is.
        With another than before, all that is cut in another way is replaced.
    on_error: what a failed extraction does, as in `HippoRAG.add`; with "fail" the file fails.

    Files that have not changed cost a reading. Raises `InputError` if `root` is not a folder or a glob is
    none, before anything is changed.
    """
    plan = plan_folder(
        memory,
        root,
        globs=globs,
        prune=prune,
        max_bytes=max_bytes,
        name=name,
        chunker=chunker,
        progress=progress,
    )
    return apply_plan(memory, plan, progress, chunker=chunker, on_error=on_error)


def apply_plan(
    memory: HippoRAG,
    plan: FolderPlan,
    progress: Progress = no_progress,
    *,
    chunker: Chunker | None = None,
    on_error: OnError = "quarantine",
) -> FolderReport:
    """Do what `plan` says, each file in one change of its own: it is whole, or as it was before.

    Stopped anywhere, what is done is done, and a sync of the same folder goes on from there. A file that is
    not any more as it was when the plan was made fails, as does one whose text or extraction is refused, and
    the rest goes on. A spent budget, or a backend that fails for three files in a row, ends the sync: the
    report says so, and lists the rest as left. Files that are gone are removed last, in one change. Errors of
    the store and of another writer come through.

    progress: stage "sync", how many files are done, how many there are to do; between these, for one file,
        the stages of `HippoRAG.add`. It may raise to stop the sync.
    chunker: must be the one of the plan.
    """
    start = time.perf_counter()
    work = _Work(plan, memory.with_chunker(chunker or StructureChunker()), on_error)
    work.held = set(holdings(work.view.index.passages, plan.root_id).by_path)
    todo = plan.changes
    for done, file in enumerate(todo):
        if file.action == "removed" or work.stopped:
            break
        progress("sync", done, len(todo))
        work.file(file, progress)
    if not work.stopped:
        work.remove([file for file in todo if file.action == "removed"])
        progress("sync", len(todo), len(todo))
    return FolderReport(
        root=plan.root,
        root_id=plan.root_id,
        files=tuple(work.outcome(file) for file in plan.files),
        usage=work.usage,
        seconds=time.perf_counter() - start,
        stopped=work.stopped,
        unmatched=plan.unmatched,
    )


@dataclass
class _Work:
    """What has been done so far."""

    plan: FolderPlan
    view: HippoRAG
    on_error: OnError
    held: set[str] = field(default_factory=set)
    outcomes: dict[str, FileOutcome] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    stopped: str = ""
    _backend_errors: int = 0

    def outcome(self, file: FilePlan) -> FileOutcome:
        if file.path in self.outcomes:
            return self.outcomes[file.path]
        if file.action in ("unchanged", "missing", "skipped"):
            return FileOutcome(
                file.path, file.source_id, file.action, file.reason, file.kind, passages=file.passages
            )
        return FileOutcome(file.path, file.source_id, "left", self.stopped)

    def _put(self, file: FilePlan, status: Status, reason: str = "", **counts: int) -> None:
        self.outcomes[file.path] = FileOutcome(file.path, file.source_id, status, reason, file.kind, **counts)

    def file(self, file: FilePlan, progress: Progress) -> None:
        """Add or replace one file."""
        read = read_file(Path(self.plan.root), file.path, max_bytes=self.plan.max_bytes)
        if isinstance(read, Skipped):
            self._put(file, "failed", read.reason)
            return
        if read.digest != file.digest:
            self._put(file, "failed", "it was changed after the plan was made; sync again")
            return
        try:
            self._index(file, document_of(self.plan.root_id, file.path, read), progress)
        except (InputError, ExtractionError) as error:
            self._put(file, "failed", str(error))
        except BudgetError as error:
            self.stopped = str(error)
        except BackendError as error:
            self._backend_errors += 1
            self._put(file, "failed", str(error))
            if self._backend_errors == _MAX_BACKEND_ERRORS:
                self.stopped = f"{_MAX_BACKEND_ERRORS} files in a row failed, the last one with: {error}"
        else:
            self._backend_errors = 0

    def _index(self, file: FilePlan, document: Document, progress: Progress) -> None:
        removed = 0
        if file.path in self.held:
            report = self.view.update(file.source_id, [document], progress, on_error=self.on_error)
            added, removed = report.added, len(report.removed.passages_removed)
        else:
            added = self.view.add([document], progress, on_error=self.on_error)
        self.usage += added.usage
        self.stopped = added.stopped
        self._put(
            file,
            "left" if added.left else file.action,
            added.stopped,
            passages=added.passages_added + added.passages_known,
            passages_added=added.passages_added,
            passages_removed=removed,
            passages_failed=len(added.failed),
        )

    def remove(self, files: Sequence[FilePlan]) -> None:
        """Take out the files that are gone, all at once."""
        gone: list[FilePlan] = []
        for file in files:
            if file.kind is None and os.path.lexists(Path(self.plan.root, file.path)):
                self._put(file, "failed", "it is there again since the plan was made; sync again")
            else:
                gone.append(file)
        if not gone:
            return
        held = holdings(self.view.index.passages, self.plan.root_id).by_path
        report = self.view.remove(source_ids=[file.source_id for file in gone])
        left = set(report.passages_removed)
        for file in gone:
            mine = held.get(file.path, {}).keys() & left
            left -= mine
            self._put(file, "removed", file.reason, passages_removed=len(mine))
