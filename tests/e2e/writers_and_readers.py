"""Two processes that write to one index while ten read it. Not a test: `test_processes.py` runs it.

What each reader has seen comes out, a line of JSON for each. The processes are forks of this one, which has
paid for the imports.
"""

import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

import torch

from hipporag_torch import Document, HippoRAG
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.index import Vocabulary
from hipporag_torch.types import Extraction, Passage, Progress, Triple, no_progress

READERS, COMMITS = 10, 25


class PairExtractor:
    """`name number` states (name, counts, number)."""

    producer = "pairs"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        stated = (passage.text.split() for passage in passages)
        return [
            Extraction(triples=(Triple(name, "counts", number),), producer=self.producer)
            for name, number in stated
        ]


def opened(directory: str, *, read_only: bool = False) -> HippoRAG:
    return HippoRAG.open(
        directory, embedder=HashingEmbedder(dim=32), extractor=PairExtractor(), read_only=read_only
    )


def write(directory: str, name: str, count: int) -> None:
    with opened(directory) as memory:
        for number in range(count):
            memory.add([Document(f"{name} {number}", source_id=name)])


def read(directory: str, stop: Event, seen: "Queue[dict[str, int]]") -> None:
    """Every look must be at one whole generation, and at none older than the last."""
    counts = Counter[str]()
    last = 0
    with opened(directory, read_only=True) as memory:
        while not stop.is_set() or memory.refresh():
            memory.refresh()
            index = memory.index
            vocabulary = Vocabulary.of(list(index.extractions), index.text)
            assert vocabulary.facts == index.facts
            assert vocabulary.phrases == index.phrases
            index.graph.validate()
            assert memory.retrieve(["who counts"])[0].passages
            assert len(index.passages) >= last
            counts["generations"] += len(index.passages) != last
            counts["looks"] += 1
            last = len(index.passages)
    seen.put({**counts, "passages": last})


def main(directory: str) -> None:
    torch.set_num_threads(1)
    write(directory, "first", 1)
    forks = multiprocessing.get_context("fork")
    stop, seen = forks.Event(), forks.Queue()
    readers = [forks.Process(target=read, args=(directory, stop, seen)) for _ in range(READERS)]
    writers = [forks.Process(target=write, args=(directory, name, COMMITS)) for name in ("left", "right")]
    for process in [*readers, *writers]:
        process.start()
    for writer in writers:
        writer.join()
    stop.set()
    lines = [json.dumps(seen.get(timeout=120)) for _ in readers]
    for reader in readers:
        reader.join()
    assert all(process.exitcode == 0 for process in [*readers, *writers])
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
