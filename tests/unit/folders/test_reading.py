import os
from pathlib import Path

import pytest

from hipporag_torch.folders.reading import FileText, read_file
from hipporag_torch.folders.selection import Skipped


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "notes"
    folder.mkdir()
    return folder


def read(root: Path, content: bytes, *, max_bytes: int = 1000) -> FileText | Skipped:
    (root / "a.md").write_bytes(content)
    return read_file(root, "a.md", max_bytes=max_bytes)


def test_text_is_decoded_with_its_line_ends_and_without_a_mark(root: Path) -> None:
    found = read(root, b"\xef\xbb\xbfgr\xc3\xbcn\r\nblau\r\n")
    assert isinstance(found, FileText)
    assert found.text == "grün\r\nblau\r\n"
    assert len(found.digest) == 64


def test_the_time_of_change_is_in_utc(root: Path) -> None:
    read(root, b"text")
    os.utime(root / "a.md", (0, 86_400.75))
    found = read_file(root, "a.md", max_bytes=10)
    assert isinstance(found, FileText)
    assert found.mtime == "1970-01-02T00:00:00+00:00"


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (b"\x89PNG\r\n\x00\x1a", "binary", "it holds zero bytes, so it is no text (in UTF-8)"),
        ("text".encode("utf-16"), "binary", "it holds zero bytes, so it is no text (in UTF-8)"),
        (b"caf\xe9", "encoding", "it is not UTF-8: byte 0xe9 at offset 3"),
        (b"", "empty", "nothing but whitespace"),
        (" \t\r\n\u00a0".encode(), "empty", "nothing but whitespace"),
        (b"x" * 1001, "too_large", "1,001 bytes, more than max_bytes=1,000"),
    ],
)
def test_what_is_no_text_has_a_reason(root: Path, content: bytes, kind: str, reason: str) -> None:
    assert read(root, content) == Skipped("a.md", kind, reason)  # type: ignore[arg-type]


def test_a_file_that_went_has_a_reason(root: Path) -> None:
    assert read_file(root, "a.md", max_bytes=10) == Skipped("a.md", "unreadable", "it is not there any more")


def test_a_folder_in_its_place_has_a_reason(root: Path) -> None:
    (root / "a.md").mkdir()
    assert read_file(root, "a.md", max_bytes=10) == Skipped("a.md", "not_a_file", "it is not a file any more")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that refuses to be read")
def test_an_error_of_the_system_is_a_reason() -> None:
    found = read_file(Path("/proc/self").resolve(), "mem", max_bytes=10)
    assert found == Skipped("mem", "unreadable", "it cannot be read: Input/output error")


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs a file of another size than it says"
)
def test_a_file_that_grows_while_it_is_read_is_not_taken() -> None:
    found = read_file(Path("/proc/self").resolve(), "status", max_bytes=100_000)
    assert found == Skipped("status", "unreadable", "it was written to while it was read")


def test_a_link_that_came_to_lead_out_is_not_followed(root: Path) -> None:
    (root.parent / "secret.md").write_text("secret")
    (root / "a.md").symlink_to("../secret.md")
    assert read_file(root, "a.md", max_bytes=10) == Skipped(
        "a.md", "link", "a link that leads out of the folder"
    )
