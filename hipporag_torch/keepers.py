"""Where a memory's index is kept: in this process, or in a directory that many processes share."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.staging import StagedEmbedder, StagedExtractor
from hipporag_torch.store.session import Session
from hipporag_torch.store.snapshot import Snapshot
from hipporag_torch.store.store import Store

Report = TypeVar("Report")
Work = Callable[[Indexer, Index], tuple[Index, Report]]
"""A change: an indexer and the present index → the next index and what was done."""


class Keeper(Protocol):
    """Holds the present index, and puts another in its place."""

    @property
    def index(self) -> Index: ...

    def change(self, action: str, indexer: Indexer, work: Work[Report]) -> Report:
        """Keep the index that `work` makes with the parts of `indexer`; on an error, the one there is."""
        ...

    def refresh(self) -> bool:
        """Go to the last generation; whether that is another one."""
        ...

    def close(self) -> None: ...


class InMemory:
    """The index lives as long as this object."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def index(self) -> Index:
        return self._index

    def change(self, action: str, indexer: Indexer, work: Work[Report]) -> Report:
        self._index, report = work(indexer, self._index)
        return report

    def refresh(self) -> bool:
        return False

    def close(self) -> None:
        pass


class OnDisk:
    """The index lives in a directory; this object reads one generation of it and may make the next."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self.store = store
        self._snapshot = snapshot

    @property
    def index(self) -> Index:
        return self._snapshot.index

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def change(self, action: str, indexer: Indexer, work: Work[Report]) -> Report:
        with self.store.write(action, self._snapshot) as session:
            index = session.snapshot.index
            new, report = work(staged(indexer, session, index), index)
            if differs(index, new):
                session.commit(new, action)
            self.adopt(session.snapshot)
        return report

    def refresh(self) -> bool:
        if self.store.generation(self._snapshot.embedder.identity) == self._snapshot.generation:
            return False
        self.adopt(self.store.read(self._snapshot.embedder.identity))
        return True

    def adopt(self, snapshot: Snapshot) -> None:
        """Hold this snapshot from now on, and let go of the last one."""
        old, self._snapshot = self._snapshot, snapshot
        if old is not snapshot:
            old.close()

    def close(self) -> None:
        self._snapshot.close()


def staged(indexer: Indexer, session: Session, index: Index) -> Indexer:
    """The same indexer with the options of `index`; what it makes is on the disk as soon as it is made."""
    return Indexer(
        embedder=StagedEmbedder(embedder=indexer.embedder, session=session),
        extractor=StagedExtractor(extractor=indexer.extractor, session=session),
        chunker=indexer.chunker,
        text=index.text,
        graph=index.graph_options,
    )


def differs(old: Index, new: Index) -> bool:
    """Whether a change has changed anything that is kept."""
    return (
        bool(new.extractions.fresh)
        or old.graph_options != new.graph_options
        or len(old.passages) != len(new.passages)
        or any(a is not b and a != b for a, b in zip(old.passages, new.passages, strict=True))
    )
