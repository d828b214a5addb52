"""A file of vectors, and the file of keys beside it."""

from pathlib import Path

import pytest
import torch

from hipporag_torch.errors import ConfigError, StoreError
from hipporag_torch.store.vectors import VectorFile, VectorType, require_vector_type, text_key

HEADER = 4096


def unit(rows: int, dim: int = 8, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(rows, dim, generator=generator), dim=1)


def keys(*texts: str) -> list[bytes]:
    return [text_key(text) for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path / "1-phrase-1.rows", "vectors of phrases", 8, "float32")


def rows(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


def test_rows_come_back_to_the_bit_in_any_order(file: VectorFile) -> None:
    emb = unit(5)
    file.append(keys("a", "b"), emb[:2], 0)
    file.append(keys("c", "d", "e"), emb[2:], 2)
    assert torch.equal(file.read(torch.arange(5), 5), emb)
    assert torch.equal(file.read(torch.arange(3), 5), emb[:3])
    assert torch.equal(file.read(rows(4, 0, 0, 2), 5), emb[[4, 0, 0, 2]])
    assert file.read(rows(), 5).shape == (0, 8)


def test_a_torn_tail_is_written_over_and_finished_rows_are_not(file: VectorFile) -> None:
    emb = unit(4)
    file.append(keys("a"), emb[:1], 0)
    with file.path.open("ab") as torn:
        torn.write(b"half a row")
    file.append(keys("b", "c"), emb[1:3], 1)
    file.append(keys("d"), emb[3:], 1)
    assert torch.equal(file.read(torch.arange(2), 2), emb[[0, 3]])
    assert file.keys(2).tolist() == keys("a", "d")


def test_what_a_reader_has_mapped_outlives_appends_and_the_file(file: VectorFile) -> None:
    emb = unit(3)
    file.append(keys("a", "b"), emb[:2], 0)
    mapped = file.read(torch.arange(2), 2)
    file.append(keys("c"), emb[2:], 2)
    file.path.unlink()
    assert torch.equal(mapped, emb[:2])


def test_half_precision_gives_rows_of_length_one_and_of_the_same_bits_each_time(tmp_path: Path) -> None:
    file = VectorFile(tmp_path / "1-phrase-1.rows", "half", 384, "float16")
    emb = unit(9, 384)
    emb[4] = 0.0
    file.append(keys(*"abcdefghi"), emb, 0)
    got = file.read(torch.arange(9), 9)
    assert torch.equal(got, file.rounded(emb))
    assert torch.equal(got[[2, 7]], file.read(rows(2, 7), 9))
    assert torch.allclose(got, emb, atol=1e-3)
    assert not torch.equal(got, emb)
    assert not got[4].any()
    norms = torch.linalg.vector_norm(got.double(), dim=1)
    assert ((norms[[0, 1, 2, 3, 5, 6, 7, 8]] - 1).abs() < 3e-7).all()
    assert file.path.stat().st_size == HEADER + 9 * 384 * 2


def test_half_precision_is_copied_without_being_rounded_again(tmp_path: Path) -> None:
    old, new = (VectorFile(tmp_path / name, "half", 384, "float16") for name in ("o.rows", "n.rows"))
    names = [str(number) for number in range(200)]
    old.append(keys(*names), unit(200, 384), 0)
    new.append(keys(*names), old.stored(torch.arange(200), 200), 0)
    assert new.path.read_bytes() == old.path.read_bytes()


def test_unnamed_rows_are_found_by_the_digest_of_their_text(file: VectorFile) -> None:
    file.append(keys("a", "b", "c"), unit(3), 0)
    assert file.unnamed(rows(1), 3) == {text_key("a"): 0, text_key("c"): 2}
    assert file.unnamed(rows(1, -1, 7), 2) == {text_key("a"): 0}
    assert file.unnamed(rows(0, 1, 2), 3) == {}


def test_without_its_file_of_keys_nothing_is_found_and_the_vectors_are_read(file: VectorFile) -> None:
    emb = unit(2)
    file.append(keys("a", "b"), emb, 0)
    file.keys_path.unlink()
    assert file.unnamed(rows(0), 2) == {}
    assert torch.equal(file.read(torch.arange(2), 2), emb)
    with pytest.raises(StoreError, match=r"file of keys .* has 0 bytes, expected at least 32"):
        file.check_keys(2)
    with pytest.raises(StoreError, match=r"file of keys .*1-phrase-1.keys cannot be read"):
        file.keys(2)


def test_a_digest_changes_with_every_row_and_key_and_with_nothing_else(file: VectorFile) -> None:
    digest = file.append(keys("a", "b", "c"), unit(3), 0)
    assert file.digest(0, 3) == digest
    file.append(keys("d"), unit(1, seed=1), 3)
    assert file.digest(0, 3) == digest
    for path, offset in ((file.path, HEADER), (file.path, HEADER + 3 * 32 - 1), (file.keys_path, 0)):
        content = bytearray(path.read_bytes())
        content[offset] ^= 1
        path.write_bytes(content)
        assert file.digest(0, 3) != digest
        content[offset] ^= 1
        path.write_bytes(content)
    assert file.digest(0, 3) == digest


def test_another_file_in_its_place_is_refused_with_both_sides(file: VectorFile, tmp_path: Path) -> None:
    other = VectorFile(tmp_path / "other.rows", "vectors of facts", 8, "float32")
    other.append(keys("a"), unit(1), 0)
    other.path.replace(file.path)
    with pytest.raises(StoreError, match=r"header says b'vectors of facts', expected 'vectors of phrases'"):
        file.read(rows(0), 1)


def test_a_file_that_is_cut_short_or_gone_is_refused(file: VectorFile) -> None:
    file.append(keys("a", "b"), unit(2), 0)
    with file.path.open("r+b") as cut:
        cut.truncate(HEADER + 63)
    with pytest.raises(
        StoreError, match=r"cut short: 4,159 bytes, expected at least 4,160 for 2 rows.*repair"
    ):
        file.read(rows(0), 2)
    file.path.unlink()
    with pytest.raises(StoreError, match=r"cannot be read: No such file.*repair"):
        file.read(rows(0), 2)


def test_a_row_that_is_not_finished_is_refused(file: VectorFile) -> None:
    file.append(keys("a", "b"), unit(2), 0)
    with pytest.raises(StoreError, match=r"row 1 of .* is needed, but only 1 are finished"):
        file.read(rows(0, 1), 1)


def test_vectors_without_numbers(tmp_path: Path) -> None:
    """An index that only words search has vectors of no dimension."""
    file = VectorFile(tmp_path / "1-passage-1.rows", "none", 0, "float32")
    file.append(keys("a", "b"), torch.empty(2, 0), 0)
    assert file.read(rows(1, 0), 2).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", None])
def test_vector_types(dtype: VectorType | None) -> None:
    require_vector_type(dtype)


def test_an_unknown_vector_type_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"index.vectors must be one of float32, float16, got 'int8'"):
        require_vector_type("int8")
