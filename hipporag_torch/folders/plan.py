"""A folder against a memory: what a sync would do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hipporag_torch.chunkers import StructureChunker
from hipporag_torch.folders.globs import Globs
from hipporag_torch.folders.holdings import Held, Holdings, given, holdings, same
from hipporag_torch.folders.reading import FileText, read_file
from hipporag_torch.folders.reports import Action, FilePlan, FolderPlan
from hipporag_torch.folders.roots import resolved_root, root_id
from hipporag_torch.folders.selection import GLOBS, MAX_BYTES, Skipped, select
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.protocols import Chunker, Progress, no_progress
from hipporag_torch.sources import pieces_of
from hipporag_torch.types import Document


def plan_folder(
    memory: HippoRAG,
    root: str | Path,
    *,
    globs: Sequence[str] = GLOBS,
    prune: bool = False,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
    chunker: Chunker | None = None,
    progress: Progress = no_progress,
) -> FolderPlan:
    """What `sync_folder` with the same arguments would do. Asks no model, writes nothing.

    A file is unchanged if the passages that it is cut into, their order, offsets and headings are those that
    its source holds. So nothing is kept beside the memory, and a sync that was stopped needs no record.

    progress: stage "read", how many files are read, how many there are.
    """
    folder, id_ = resolved_root(root), root_id(root, name)
    patterns = Globs(globs)
    selection = select(folder, patterns, max_bytes=max_bytes)
    memory.refresh()
    view = memory.with_chunker(chunker or StructureChunker())
    planned = _Planned(view.index, holdings(view.index.passages, id_), id_, prune)
    for done, path in enumerate(selection.files):
        progress("read", done, len(selection.files))
        read = read_file(folder, path, max_bytes=max_bytes)
        if isinstance(read, Skipped):
            planned.skip(read)
        else:
            document = document_of(id_, path, read)
            held = given(pieces_of([document], view.chunker, view.index.text))
            planned.file(path, read, document, held)
    progress("read", len(selection.files), len(selection.files))
    for skipped in selection.skipped:
        planned.skip(skipped)
    for path in sorted(planned.holdings.own):
        if patterns.match(path):
            planned.gone(path)
    cost = view.plan_add(planned.documents)
    return FolderPlan(
        root=str(folder),
        root_id=id_,
        globs=patterns.patterns,
        max_bytes=max_bytes,
        prune=prune,
        files=planned.ordered(),
        passages_new=cost.passages_new,
        passages_retried=cost.passages_retried,
        passages_removed=planned.passages_removed,
        extractor_calls=cost.extractor_calls,
        usage=cost.usage,
        unmatched=selection.unmatched,
    )


def document_of(id_: str, path: str, read: FileText) -> Document:
    """The document that a file is to the memory."""
    return Document(read.text, f"{id_}/{path}", {"root": id_, "path": path, "mtime": read.mtime})


@dataclass
class _Planned:
    """What has been decided so far."""

    index: Index
    holdings: Holdings
    root_id: str
    prune: bool
    files: dict[str, FilePlan] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    now: dict[str, Held] = field(default_factory=dict)
    """By path, what the sources that are to change would hold."""
    brought: set[str] = field(default_factory=set)

    def _put(self, path: str, action: Action, **more: object) -> None:
        plan = FilePlan(path=path, source_id=f"{self.root_id}/{path}", action=action)
        self.files[path] = replace(plan, **more)

    def file(self, path: str, read: FileText, document: Document, held: Held) -> None:
        before = self.holdings.by_path.get(path, {})
        new = [key for key in held if key not in self.index.passage_row and key not in self.brought]
        action: Action = "replaced" if before else "added"
        if before and same(before, held):
            heals = any(self.index.failed.get(key) is False for key in held)
            action = "retried" if heals else "unchanged"
        if action != "unchanged":
            self.documents.append(document)
            self.now[path] = held
            self.brought.update(held)
        self._put(
            path,
            action,
            digest=read.digest,
            passages=len(held),
            passages_new=len(new),
            passages_left=len(before.keys() - held.keys()),
        )

    def skip(self, skipped: Skipped) -> None:
        """What the memory holds of it goes with pruning, unless that might be right still."""
        held = self.holdings.by_path.get(skipped.path, {}) if skipped.path in self.holdings.own else {}
        if held and self.prune and skipped.kind != "unreadable":
            self._remove(skipped.path, skipped)
        else:
            kept = "; the memory keeps what it holds of it" if held else ""
            self._put(skipped.path, "skipped", reason=skipped.reason + kept, kind=skipped.kind)

    def gone(self, path: str) -> None:
        """Decide on a path of the memory that may not be in the folder."""
        if path in self.files:
            return
        above = next((self.files[f] for f in _folders(path) if f in self.files), None)
        if above is not None and above.kind == "unreadable":
            self._put(path, "skipped", reason=f"in {above.path}: {above.reason}", kind="unreadable")
        elif self.prune:
            self._remove(path, above)
        else:
            self._put(path, "missing", reason=f"in {above.path}: {above.reason}" if above else "")

    def _remove(self, path: str, why: Skipped | FilePlan | None) -> None:
        self.now[path] = {}
        reason = f"{why.path}: {why.reason}" if why else ""
        left = len(self.holdings.by_path[path])
        self._put(path, "removed", reason=reason, kind=why.kind if why else None, passages_left=left)

    @property
    def passages_removed(self) -> int:
        """How many passages would have no source left."""
        holders = self.holdings.holders.copy()
        for path, held in self.now.items():
            holders.subtract(self.holdings.by_path.get(path, {}).keys() - held.keys())
            holders.update(held.keys() - self.holdings.by_path.get(path, {}).keys())
        return sum(count == 0 for count in holders.values())

    def ordered(self) -> tuple[FilePlan, ...]:
        """By path. What another file takes over leaves its own last, so that it is not extracted again."""
        before = self.holdings.by_path
        taken = {key for path, held in self.now.items() for key in held.keys() - before.get(path, {}).keys()}
        for path, plan in self.files.items():
            if plan.action == "replaced" and (before[path].keys() - self.now[path].keys()) & taken:
                self.files[path] = replace(plan, gives=True)
        return tuple(self.files[path] for path in sorted(self.files))


def _folders(path: str) -> Iterator[str]:
    """The folders that a path is in, with `/`, the innermost last."""
    for place, character in enumerate(path):
        if character == "/":
            yield path[: place + 1]
