"""Memories for the tests of the service: passages such as `Ada founded Northwind`, and a slow model."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hipporag_torch import Document, HippoRAG
from hipporag_torch.chunkers import WholeDocument
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError
from hipporag_torch.protocols import Extractor, Progress, no_progress
from hipporag_torch.readers import ExtractiveReader
from hipporag_torch.service.confirmation import Confirmations
from hipporag_torch.service.limits import Limits, Roots
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.sharing import SharedEmbedder
from hipporag_torch.service.views import Opened
from hipporag_torch.store.store import Store
from hipporag_torch.types import Extraction, Passage, Triple

DOCUMENTS = [
    Document("Ada founded Northwind", "ada.md", {"path": "ada.md"}),
    Document("Northwind prints atlases", "northwind.md"),
    Document("Bergen borders Askoy", "bergen.md"),
]


class Sayings:
    """Each passage states its first three words. It takes `seconds`, and waits for `gate` before each.

    `asked` lists the passages in the order in which they were extracted; one that says `broken` fails.
    """

    producer = "sayings"
    calls_per_passage = 2

    def __init__(self, *, seconds: float = 0.0, gate: threading.Event | None = None) -> None:
        self._seconds = seconds
        self.gate = gate or threading.Event()
        if gate is None:
            self.gate.set()
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        found: dict[str, Extraction] = {}
        self.extract_each(passages, lambda passage, made: found.update({passage.id: made}), progress)
        return [found[passage.id] for passage in passages]

    def extract_each(
        self,
        passages: Sequence[Passage],
        keep: Callable[[Passage, Extraction], None],
        progress: Progress = no_progress,
    ) -> None:
        for number, passage in enumerate(passages):
            self.asked.append(passage.text)
            while not self.gate.wait(0.01):
                progress("extract", number, len(passages))
            time.sleep(self._seconds)
            words = [*passage.text.split(), "", ""]
            triple = Triple(words[0], words[1] or "is", words[2] or words[0])
            failed = Extraction(status="failed", reason="the model said nothing", producer=self.producer)
            keep(
                passage,
                failed if "broken" in words else Extraction(triples=(triple,), producer=self.producer),
            )
            progress("extract", number + 1, len(passages))


def opened(directory: Path, extractor: Extractor, *, read_only: bool = False) -> Opened:
    embedder = SharedEmbedder(embedder=HashingEmbedder(dim=64))
    chunker = WholeDocument()
    memory = HippoRAG.open(
        directory, embedder=embedder, extractor=extractor, chunker=chunker, read_only=read_only
    )
    return Opened(memory, extractor, ExtractiveReader(embedder=embedder), chunker)


def service_on(
    directory: Path,
    extractor: Extractor | None = None,
    *,
    read_only: bool = False,
    above: int | None = None,
    roots: Sequence[Path] = (),
    limits: Limits | None = None,
    most_waiting: int = 100,
) -> MemoryService:
    """A service that is not started; `above` is `confirm_above`."""
    made = extractor or Sayings()
    return MemoryService(
        store=Store(directory, read_only=read_only),
        open_memory=lambda: opened(directory, made, read_only=read_only),
        confirmations=Confirmations(above=above),
        roots=Roots(roots),
        limits=limits,
        most_waiting=most_waiting,
    )


class FailsFirst:
    """Opens a memory, but not the first time that it is asked to."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.calls = 0

    def __call__(self) -> Opened:
        self.calls += 1
        if self.calls == 1:
            raise BackendError("the model is not there yet; start it")
        return opened(self._directory, Sayings())
