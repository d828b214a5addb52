"""One embedder for reads and writes: a question does not wait for the texts of a long write."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.wrapped import WrappedEmbedder
from hipporag_torch.protocols import Embedder, Progress, no_progress
from hipporag_torch.types import Role

# Texts that a write embeds before it looks whether a question waits: the usual batch of an embedder.
_TEXTS_AT_ONCE = 64
# A write goes on after this long, whatever waits: reads without end must not starve it.
_PATIENCE_SECONDS = 1.0

_here = threading.local()


@contextmanager
def giving_way() -> Iterator[None]:
    """What this thread embeds meanwhile is a write's: it goes behind the reads of other threads."""
    _here.writes = True
    try:
        yield
    finally:
        _here.writes = False


class SharedEmbedder(WrappedEmbedder):
    """Wraps any embedder: a write's texts go through it in batches, and before each, waiting reads do."""

    def __init__(self, *, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._reads = 0
        self._changed = threading.Condition()

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's."""
        if not getattr(_here, "writes", False):
            with self._reading():
                return self._embedder.embed(texts, role, progress)
        # Like lengths together, the longest first: the batches are those that the embedder would make.
        order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), texts[row]))
        rows = torch.zeros(len(texts), self.identity.dim)
        for start in range(0, len(order), _TEXTS_AT_ONCE):
            chosen = order[start : start + _TEXTS_AT_ONCE]
            with self._changed:
                self._changed.wait_for(lambda: not self._reads, timeout=_PATIENCE_SECONDS)
            rows[chosen] = self._embedder.embed([texts[row] for row in chosen], role)
            progress(f"embed {role}", start + len(chosen), len(order))
        return rows

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._changed:
            self._reads += 1
        try:
            yield
        finally:
            with self._changed:
                self._reads -= 1
                self._changed.notify_all()
