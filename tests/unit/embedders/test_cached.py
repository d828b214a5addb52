"""An embedder that asks its cache first."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class Counting:
    """Hashes texts, remembers what it was asked, and breaks in a chosen way at a chosen text."""

    def __init__(self, *, stop_at: str = "", bad: float | None = None, dim: int = 16) -> None:
        self._hashing = HashingEmbedder(dim=16, instructions={"question_to_fact": "query: "})
        self._stop_at = stop_at
        self._bad = bad
        self._dim = dim
        self.asked: list[str] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return self._hashing.identity

    def instruction(self, role: Role) -> str:
        return self._hashing.instruction(role)

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        if self._stop_at in texts:
            raise KeyboardInterrupt
        self.asked += texts
        rows = self._hashing.embed(texts, role, progress)[:, : self._dim]
        if self._bad is not None:
            rows[-1, 0] = self._bad
        return rows

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [text == "long" for text in texts]


@pytest.fixture
def cache(tmp_path: Path) -> EmbeddingCache:
    return EmbeddingCache(tmp_path / "embeddings.sqlite")


def test_a_second_call_embeds_nothing(cache: EmbeddingCache):
    first, second = Counting(), Counting()
    rows = CachedEmbedder(embedder=first, cache=cache).embed(["a", "b"], "passage")
    again = CachedEmbedder(embedder=second, cache=cache)
    assert torch.equal(again.embed(["b", "a"], "passage"), rows[[1, 0]])
    assert second.asked == []
    assert (again.hits, again.misses) == (2, 0)


def test_a_text_is_embedded_once_whatever_its_role(cache: EmbeddingCache):
    counting = Counting()
    cached = CachedEmbedder(embedder=counting, cache=cache)
    rows = cached.embed(["a", "b", "a", "a"], "phrase")
    assert torch.equal(rows[0], rows[3])
    cached.embed(["b", "c"], "fact")
    assert counting.asked == ["a", "b", "c"]
    assert (cached.hits, cached.misses) == (1, 3)


def test_another_instruction_is_another_vector(cache: EmbeddingCache):
    counting = Counting()
    cached = CachedEmbedder(embedder=counting, cache=cache)
    cached.embed(["a"], "passage")
    cached.embed(["a"], "question_to_fact")
    assert counting.asked == ["a", "a"]


def test_preloaded_vectors_are_returned_verbatim(cache: EmbeddingCache):
    counting = Counting()
    rows = torch.nn.functional.normalize(torch.randn(2, 16), dim=1)
    cache.put(counting.identity, "", ["a", "b"], rows)
    got = CachedEmbedder(embedder=counting, cache=cache).embed(["b", "a"], "passage")
    assert torch.equal(got, rows[[1, 0]])
    assert counting.asked == []


def test_it_says_of_itself_what_the_embedder_says(cache: EmbeddingCache):
    counting = Counting()
    cached = CachedEmbedder(embedder=counting, cache=cache)
    assert cached.identity == counting.identity
    assert cached.instruction("question_to_fact") == "query: "
    assert cached.truncated(["long", "short"], "passage") == [True, False]


def test_progress_counts_what_was_held_and_what_is_embedded(cache: EmbeddingCache):
    cached = CachedEmbedder(embedder=Counting(), cache=cache, chunk_size=2)
    cached.embed(["a", "b"], "passage")
    calls: list[tuple[str, int, int]] = []
    cached.embed(list("abcdefa"), "passage", lambda *call: calls.append(call))
    assert calls == [("embed passage", done, 6) for done in (2, 4, 6)]


def test_an_interrupted_run_keeps_the_chunks_it_paid_for(cache: EmbeddingCache):
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(embedder=Counting(stop_at="e"), cache=cache, chunk_size=2).embed(
            list("abcdef"), "fact"
        )
    counting = Counting()
    CachedEmbedder(embedder=counting, cache=cache).embed(list("abcdef"), "fact")
    assert counting.asked == ["e", "f"]


KILLED = """
import os, signal, sys
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder

class Killed(HashingEmbedder):
    def embed(self, texts, role, progress):
        if "e" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed(texts, role, progress)

cache = EmbeddingCache(sys.argv[1])
CachedEmbedder(embedder=Killed(dim=16), cache=cache, chunk_size=2).embed(list("abcdef"), "fact")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_a_readable_cache(cache: EmbeddingCache):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(cache.path)], check=False)
    assert killed.returncode == -9
    found, _ = cache.get(HashingEmbedder(dim=16).identity, "", list("abcdef"))
    assert found.tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_row_that_is_not_finite_is_never_stored(cache: EmbeddingCache, bad: float):
    with pytest.raises(BackendError, match=r"hashing returned NaN or infinity .* text 1: 'b'"):
        CachedEmbedder(embedder=Counting(bad=bad), cache=cache).embed(["a", "b"], "passage")
    assert not cache.get(Counting().identity, "", ["a", "b"])[0].any()


def test_a_row_of_another_length_is_never_stored(cache: EmbeddingCache):
    with pytest.raises(BackendError, match=r"dim=16, .* have 12 numbers"):
        CachedEmbedder(embedder=Counting(dim=12), cache=cache).embed(["a"], "passage")


def test_the_chunk_size_must_be_positive(cache: EmbeddingCache):
    with pytest.raises(ConfigError, match="chunk_size must be at least 1, got 0"):
        CachedEmbedder(embedder=Counting(), cache=cache, chunk_size=0)
