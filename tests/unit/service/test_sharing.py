"""One embedder for reads and writes."""

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.service.sharing import SharedEmbedder, giving_way
from hipporag_torch.types import Role

TEXTS = [f"{'word ' * (n % 7)}number {n}" for n in range(150)]


class OneAtATime(HashingEmbedder):
    """Holds a lock as a real model does, lists its calls, and waits in the first for `go`."""

    def __init__(self) -> None:
        super().__init__(dim=32)
        self._lock = threading.Lock()
        self.calls: list[list[str]] = []
        self.entered, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> Tensor:
        with self._lock:
            self.calls.append(list(texts))
            self.entered.set()
            assert self.go.wait(5)
        return super().embed(texts, role, progress)


def test_a_write_gets_the_same_vectors_in_the_same_order():
    plain, shared = HashingEmbedder(dim=32), SharedEmbedder(embedder=HashingEmbedder(dim=32))
    with giving_way():
        made = shared.embed(TEXTS, "passage")
        none = shared.embed([], "passage")
    assert torch.equal(made, plain.embed(TEXTS, "passage"))
    assert none.shape == (0, 32)
    assert shared.identity == plain.identity


def test_a_question_is_embedded_between_the_batches_of_a_write():
    model = OneAtATime()
    shared = SharedEmbedder(embedder=model)

    def write() -> None:
        with giving_way():
            shared.embed(TEXTS, "passage")

    writer = threading.Thread(target=write)
    writer.start()
    assert model.entered.wait(5)
    reader = threading.Thread(target=shared.embed, args=(["a question"], "question_to_fact"))
    reader.start()
    while not shared._reads:
        pass
    model.go.set()
    writer.join(5)
    reader.join(5)
    assert [len(call) for call in model.calls] == [64, 1, 64, 22]


def test_progress_of_a_write_counts_its_texts():
    seen: list[tuple[str, int, int]] = []
    with giving_way():
        SharedEmbedder(embedder=HashingEmbedder(dim=32)).embed(
            TEXTS, "passage", lambda *step: seen.append(step)
        )
    assert seen == [("embed passage", 64, 150), ("embed passage", 128, 150), ("embed passage", 150, 150)]
