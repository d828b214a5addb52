"""The file that vectors are kept in."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.errors import BackendError, CompatibilityError, ConfigError, InputError
from hipporag_torch.protocols import EmbedderIdentity

IDENTITY = EmbedderIdentity(name="fake", weights="w1", dim=4, pooling="mean", max_tokens=256)


@pytest.fixture
def cache(tmp_path: Path) -> EmbeddingCache:
    return EmbeddingCache(tmp_path / "new" / "embeddings.sqlite", wait_seconds=0.1)


def unit(count: int, dim: int = 4) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(count, dim), dim=1)


def test_what_was_put_comes_back_to_the_bit(cache: EmbeddingCache):
    texts, rows = ["a", "", "東京"], unit(3)
    rows[1] = 0.0
    cache.put(IDENTITY, "", texts, rows)
    found, got = cache.get(IDENTITY, "", ["東京", "b", "a", "", "a"])
    assert found.tolist() == [True, False, True, True, True]
    assert torch.equal(got, torch.stack([rows[2], torch.zeros(4), rows[0], rows[1], rows[0]]))


def test_more_texts_than_a_query_takes(cache: EmbeddingCache):
    texts, rows = [str(number) for number in range(2_000)], unit(2_000)
    cache.put(IDENTITY, "", texts[::2], rows[::2])
    found, got = cache.get(IDENTITY, "", texts)
    assert found.tolist() == [True, False] * 1_000
    assert torch.equal(got[::2], rows[::2])
    assert not got[1::2].any()


def test_nothing_asked_nothing_found(cache: EmbeddingCache):
    found, rows = cache.get(IDENTITY, "", [])
    assert found.shape == (0,)
    assert rows.shape == (0, 4)
    cache.put(IDENTITY, "", [], torch.zeros(0, 4))


@pytest.mark.parametrize(
    "other",
    [
        replace(IDENTITY, name="other"),
        replace(IDENTITY, weights="w2"),
        replace(IDENTITY, dim=5),
        replace(IDENTITY, pooling="cls"),
        replace(IDENTITY, max_tokens=None),
    ],
)
def test_another_identity_finds_nothing(cache: EmbeddingCache, other: EmbedderIdentity):
    cache.put(IDENTITY, "", ["a"], unit(1))
    assert not cache.get(other, "", ["a"])[0].any()


def test_another_instruction_finds_nothing(cache: EmbeddingCache):
    cache.put(IDENTITY, "query: ", ["a"], unit(1))
    assert not cache.get(IDENTITY, "", ["a", "query: a"])[0].any()
    assert not cache.get(IDENTITY, "query", ["a", ": a"])[0].any()


def test_instructions_of_other_roles_do_not_matter(cache: EmbeddingCache):
    cache.put(IDENTITY, "", ["a"], unit(1))
    assert cache.get(replace(IDENTITY, instructions=(("fact", "Fact: "),)), "", ["a"])[0].all()


def test_the_first_vector_stays(cache: EmbeddingCache):
    first = unit(1)
    cache.put(IDENTITY, "", ["a"], first)
    cache.put(IDENTITY, "", ["a"], unit(1))
    assert torch.equal(cache.get(IDENTITY, "", ["a"])[1], first)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (torch.zeros(1, 4), "shape .2, 4."),
        (torch.zeros(2, 5), "shape .2, 4."),
        (torch.zeros(2, 4, dtype=torch.float64), "got torch.float64"),
        (torch.full((2, 4), 0.7), r"text 0 \('a'\) has length 1.4"),
        (torch.tensor([[1.0, 0, 0, 0], [torch.nan, 0, 0, 0]]), r"text 1 \('b'\) has length nan"),
    ],
)
def test_rows_that_are_not_unit_vectors_are_refused(cache: EmbeddingCache, rows: torch.Tensor, said: str):
    with pytest.raises(InputError, match=said):
        cache.put(IDENTITY, "", ["a", "b"], rows)


def test_a_file_of_something_else_is_an_error(cache: EmbeddingCache):
    cache.path.parent.mkdir()
    cache.path.write_text("no database, but long enough to be taken for one\n" * 100)
    with pytest.raises(CompatibilityError, match=r"embeddings.sqlite cannot be read: .* only a cache"):
        cache.get(IDENTITY, "", ["a"])
    assert cache.path.read_text().startswith("no database")


def test_a_database_of_another_program_is_an_error_and_stays_as_it_is(cache: EmbeddingCache):
    cache.path.parent.mkdir()
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("CREATE TABLE letters (text)")
    before = cache.path.read_bytes()
    with pytest.raises(CompatibilityError, match="not an embedding cache of this version"):
        cache.put(IDENTITY, "", ["a"], unit(1))
    assert cache.path.read_bytes() == before


def test_a_damaged_file_is_an_error(cache: EmbeddingCache):
    texts = [str(number) for number in range(3_000)]
    cache.put(IDENTITY, "", texts, unit(3_000))
    damaged = bytearray(cache.path.read_bytes())
    damaged[4_096:] = b"\xff" * (len(damaged) - 4_096)
    cache.path.write_bytes(damaged)
    with pytest.raises(CompatibilityError, match="Delete it, it is only a cache"):
        cache.get(IDENTITY, "", texts)


def test_a_vector_of_another_length_is_an_error_not_a_hit(cache: EmbeddingCache):
    cache.put(IDENTITY, "", ["a"], unit(1))
    with closing(sqlite3.connect(cache.path)) as other, other:
        other.execute("UPDATE embeddings SET vector = x'00112233'")
    with pytest.raises(CompatibilityError, match=r"vector of 4 bytes, expected 16 .* delete it"):
        cache.get(IDENTITY, "", ["a"])


def test_a_file_that_stays_locked_is_an_error(cache: EmbeddingCache):
    cache.put(IDENTITY, "", ["a"], unit(1))
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BackendError, match=r"database is locked; .* another process"):
            cache.put(IDENTITY, "", ["b"], unit(1))
    cache.put(IDENTITY, "", ["b"], unit(1))


def test_a_folder_is_not_a_cache(tmp_path: Path):
    with pytest.raises(BackendError, match="must be a file that may be written"):
        EmbeddingCache(tmp_path).get(IDENTITY, "", ["a"])


def test_the_wait_must_be_a_time(tmp_path: Path):
    with pytest.raises(ConfigError, match="wait_seconds must be at least 0, got -1"):
        EmbeddingCache(tmp_path / "embeddings.sqlite", wait_seconds=-1)


WRITER = """
import sys, torch
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.protocols import EmbedderIdentity
torch.set_num_threads(1)
identity = EmbedderIdentity(name="fake", weights="w1", dim=4, pooling="mean", max_tokens=256)
cache = EmbeddingCache(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for start in range(int(sys.argv[2]), 2_000, 20):
    texts = [str(number) for number in range(start, start + 20)]
    cache.put(identity, "", texts, torch.eye(4)[torch.tensor([int(text) % 4 for text in texts])])
"""


def test_two_processes_write_at_once(cache: EmbeddingCache):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(cache.path), str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first in (0, 10)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    texts = [str(number) for number in range(2_010)]
    found, rows = cache.get(IDENTITY, "", texts)
    assert found.all()
    assert torch.equal(rows, torch.eye(4)[torch.arange(2_010) % 4])
