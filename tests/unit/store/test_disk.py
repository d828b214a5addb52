"""Steps that a crash cannot tear."""

from hashlib import blake2b
from pathlib import Path

import pytest

from hipporag_torch.errors import StoreError
from hipporag_torch.store.disk import PARTIAL, digest_of_file, publish, unlink


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "3-1.safetensors"
    path.write_bytes(b"old")

    def write(partial: Path) -> None:
        assert path.read_bytes() == b"old"
        partial.write_bytes(b"new")

    publish(path, write)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(path.name, b"new")]


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "3-1.safetensors"
    path.write_bytes(b"old")

    def write(partial: Path) -> None:
        partial.write_bytes(b"ha")
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"3-1.safetensors could not be written: No space left.*as it was"):
        publish(path, write)
    assert path.read_bytes() == b"old"
    assert path.with_name(path.name + PARTIAL).exists()
    publish(path, lambda partial: None)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(path.name, b"ha")]


def test_unlinking_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    unlink([there, tmp_path / "gone"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="could not be written"):
        unlink([tmp_path])


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (3, None), (1, 4), (2, 2), (0, 99), (0, (1 << 20) + 1)]
)
def test_a_digest_is_of_the_bytes_in_the_range(tmp_path: Path, start: int, stop: int | None) -> None:
    content = bytes(range(256)) * (1 << 13)
    (tmp_path / "file").write_bytes(content)
    expected = blake2b(content[start:stop], digest_size=16).digest()
    assert digest_of_file(tmp_path / "file", start, stop) == expected
