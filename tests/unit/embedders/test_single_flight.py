"""Processes that embed at once: no text twice, and none waits for nothing."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError

HASHING = HashingEmbedder(dim=16)

# Embeds the texts of `numbers`, 8 at a time, once the file `go` is there; writes down each that it is asked.
WORKER = """
import os, signal, sys, time
from pathlib import Path
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder

folder, first, last, killed_at = Path(sys.argv[1]), *map(int, sys.argv[2:])

class Counting(HashingEmbedder):
    def embed(self, texts, role, progress):
        with (folder / "asked").open("a") as asked:
            asked.write("".join(f"{text}\\n" for text in texts))
        if f"text {killed_at}" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        return super().embed(texts, role, progress)

cache = EmbeddingCache(folder / "cache.sqlite")
cached = CachedEmbedder(embedder=Counting(dim=16), cache=cache, chunk_size=8)
print("ready", flush=True)
while not (folder / "go").exists():
    time.sleep(0.001)
rows = cached.embed([f"text {number}" for number in range(first, last)], "passage")
assert (rows == HashingEmbedder(dim=16).embed([f"text {n}" for n in range(first, last)], "passage")).all()
print(cached.hits, cached.misses)
"""


def start(folder: Path, first: int, last: int, killed_at: int = -1) -> "subprocess.Popen[str]":
    arguments = [str(folder), str(first), str(last), str(killed_at)]
    worker = subprocess.Popen([sys.executable, "-c", WORKER, *arguments], stdout=subprocess.PIPE, text=True)
    assert worker.stdout
    assert worker.stdout.readline() == "ready\n"
    return worker


def asked(folder: Path) -> Counter[str]:
    return Counter((folder / "asked").read_text("utf-8").splitlines())


def finish(worker: "subprocess.Popen[str]") -> tuple[int, int]:
    out, _ = worker.communicate(timeout=60)
    assert worker.returncode == 0
    hits, misses = map(int, out.split())
    return hits, misses


@pytest.mark.slow
def test_two_processes_embed_every_text_once(tmp_path: Path) -> None:
    workers = [start(tmp_path, 0, 100), start(tmp_path, 40, 140)]
    (tmp_path / "go").touch()
    counts = [finish(worker) for worker in workers]
    assert asked(tmp_path) == Counter(f"text {number}" for number in range(140))
    assert [sum(count) for count in counts] == [100, 100]
    assert sum(misses for _, misses in counts) == 140


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_its_turn_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    killed = start(tmp_path, 0, 40, killed_at=20)
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    assert finish(start(tmp_path, 0, 40)) == (16, 24)
    # The chunk that it was killed in is the only one that was asked for twice.
    assert {text for text, times in asked(tmp_path).items() if times > 1} == {
        f"text {n}" for n in range(16, 24)
    }


@pytest.fixture
def cache(tmp_path: Path) -> EmbeddingCache:
    return EmbeddingCache(tmp_path / "cache.sqlite")


@contextmanager
def someone_elses_turn(cache: EmbeddingCache, over: threading.Event) -> Iterator[None]:
    """Another thread has the turn until `over`, or until the block ends."""
    begun = threading.Event()

    def hold() -> None:
        with cache.turn(HASHING.identity, "", lambda: None):
            begun.set()
            over.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_waiting_is_told_as_progress(cache: EmbeddingCache) -> None:
    over = threading.Event()
    told: list[tuple[str, int, int]] = []

    def progress(stage: str, done: int, total: int) -> None:
        told.append((stage, done, total))
        if stage.startswith("wait"):
            over.set()

    cached = CachedEmbedder(embedder=HASHING, cache=cache)
    cached.embed(["a"], "passage")
    with someone_elses_turn(cache, over):
        cached.embed(["a", "b", "c"], "passage", progress)
    assert told == [("embed passage", 1, 3), ("wait to embed passage", 1, 3), ("embed passage", 3, 3)]


def test_what_another_embedded_meanwhile_is_taken_from_the_cache(cache: EmbeddingCache) -> None:
    over = threading.Event()
    told: list[tuple[str, int, int]] = []
    rows = -HASHING.embed(["a", "b"], "passage")

    def progress(stage: str, done: int, total: int) -> None:
        told.append((stage, done, total))
        if stage.startswith("wait"):
            cache.put(HASHING.identity, "", ["a", "b"], rows)
            over.set()

    cached = CachedEmbedder(embedder=HASHING, cache=cache)
    with someone_elses_turn(cache, over):
        emb = cached.embed(["b", "c", "a"], "passage", progress)
    assert torch.equal(emb[[2, 0]], rows)
    assert (cached.hits, cached.misses) == (2, 1)
    assert told[1:] == [("embed passage", 2, 3), ("embed passage", 3, 3)]


def test_who_lacks_nothing_waits_for_nobody(cache: EmbeddingCache) -> None:
    cached = CachedEmbedder(embedder=HASHING, cache=cache)
    cached.embed(["a", "b"], "passage")
    with someone_elses_turn(cache, threading.Event()):
        cached.embed(["b", "a"], "passage")
        cached.embed([], "passage")
    assert (cached.hits, cached.misses) == (2, 2)


def test_another_instruction_is_another_turn(cache: EmbeddingCache) -> None:
    embedder = HashingEmbedder(dim=16, instructions={"question_to_fact": "q: "})
    with someone_elses_turn(cache, threading.Event()):
        CachedEmbedder(embedder=embedder, cache=cache).embed(["a"], "question_to_fact")


def test_a_cache_within_the_same_cache_does_not_wait_for_itself(cache: EmbeddingCache) -> None:
    inner = CachedEmbedder(embedder=HASHING, cache=cache)
    CachedEmbedder(embedder=inner, cache=cache).embed(["a", "b"], "passage")
    assert inner.misses == 2


def test_a_turn_ends_with_an_error_within_it(cache: EmbeddingCache) -> None:
    with pytest.raises(KeyError), cache.turn(HASHING.identity, "", lambda: None):
        raise KeyError
    over = threading.Event()
    over.set()
    with someone_elses_turn(cache, over):
        pass


def test_a_lock_that_cannot_be_taken_is_a_plain_error(cache: EmbeddingCache) -> None:
    cached = CachedEmbedder(embedder=HASHING, cache=cache)
    cached.embed(["a"], "passage")
    (lock,) = cache.path.parent.glob("*.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(BackendError, match=r"lock .*cache\.\w+\.lock .* runtime.cache=false does without"):
        cached.embed(["b"], "passage")
    cached.embed(["a"], "passage")
