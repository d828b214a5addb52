"""Which files of a folder are taken, and the reasons for those that are not."""

import os
from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.folders.globs import Globs
from hipporag_torch.folders.selection import GLOBS, Selection, select

from .trees import closed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "notes"
    folder.mkdir()
    return folder


def write(root: Path, *paths: str, content: str = "text") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def selected(root: Path, *, max_bytes: int = 100) -> Selection:
    return select(root, Globs(GLOBS), max_bytes=max_bytes)


def reasons(selection: Selection) -> dict[str, str]:
    return {skipped.path: f"{skipped.kind}: {skipped.reason}" for skipped in selection.skipped}


def test_files_that_a_glob_names_are_taken_in_order(root: Path) -> None:
    write(root, "b.md", "a/z.rst", "a.txt", "a/b/c.markdown", "x.py", "README")
    found = selected(root)
    assert found.files == ("a.txt", "a/b/c.markdown", "a/z.rst", "b.md")
    assert (found.skipped, found.unmatched) == ((), 2)


def test_hidden_ones_and_what_was_installed_or_built_is_skipped_with_a_reason(root: Path) -> None:
    write(
        root, ".a.md", ".git/b.md", "node_modules/c/d.md", "x.dist-info/e.txt", "env/pyvenv.cfg", "env/f.md"
    )
    write(root, "cache/CACHEDIR.TAG", "cache/g.md", ".hidden.py")
    found = selected(root)
    assert (found.files, found.unmatched) == ((), 1)
    assert reasons(found) == {
        ".a.md": "hidden: a hidden file",
        ".git/": "hidden: a hidden folder",
        "cache/": "dependencies: a folder with CACHEDIR.TAG: it was installed or is a cache",
        "env/": "dependencies: a folder with pyvenv.cfg: it was installed or is a cache",
        "node_modules/": "dependencies: node_modules is a folder of what was installed or built",
        "x.dist-info/": "dependencies: x.dist-info is a folder of what was installed or built",
    }


def test_the_folder_itself_may_be_called_anything(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / ".build"
    write(folder, "a.md")
    assert selected(folder).files == ("a.md",)


def test_a_file_over_the_limit_is_skipped(root: Path) -> None:
    write(root, "a.md", content="x" * 100)
    write(root, "b.md", content="x" * 101)
    found = selected(root)
    assert found.files == ("a.md",)
    assert reasons(found) == {"b.md": "too_large: 101 bytes, more than max_bytes=100"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_skipped_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "a.md")
    assert reasons(selected(root)) == {
        "a.md": "not_a_file: neither a file nor a folder, but a pipe, socket or device"
    }


def test_links_that_lead_out_nowhere_or_round_are_skipped(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "secret.md", "private/a.md")
    write(root, "sub/a.md")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "up.md").symlink_to("../secret.md")
    (root / "outside").symlink_to(tmp_path / "private")
    (root / "parent").symlink_to("..")
    (root / "self.md").symlink_to("self.md")
    (root / "broken.md").symlink_to("not-there")
    (root / "sub" / "loop").symlink_to("..")
    (root / "sub" / "again").symlink_to("../sub")
    (root / "code.py").symlink_to(tmp_path / "secret.md")
    found = selected(root)
    assert (found.files, found.unmatched) == (("sub/a.md",), 1)
    out, nowhere = (
        "link: a link that leads out of the folder",
        "link: a link that leads nowhere, or to itself",
    )
    assert reasons(found) == {
        "broken.md": nowhere,
        "out.md": out,
        "outside/": out,
        "parent/": out,
        "self.md": nowhere,
        "sub/again/": "link: a link to sub/, which is read under that path",
        "sub/loop/": "link: a link to ./, which is read under that path",
        "up.md": out,
    }


def test_a_link_inside_is_followed_unless_its_file_is_read_anyway(root: Path) -> None:
    write(root, "a.md", "data.bin", ".hidden/b.md")
    (root / "another.md").symlink_to("a.md")
    (root / "data.md").symlink_to("data.bin")
    (root / "shown").symlink_to(".hidden")
    (root / "twice").symlink_to(".hidden")
    found = selected(root)
    assert found.files == ("a.md", "data.md", "shown/b.md")
    assert reasons(found) == {
        ".hidden/": "hidden: a hidden folder",
        "another.md": "link: a link to a.md, which is read under that path",
        "twice/": "link: a link to shown/, which is read under that path",
    }


def test_names_that_are_no_unicode_are_skipped(root: Path) -> None:
    try:
        (root / os.fsdecode(b"caf\xe9.md")).write_text("text")
        (root / os.fsdecode(b"caf\xe9")).mkdir()
    except OSError:
        pytest.skip("this file system takes no such names")
    assert reasons(selected(root)) == {
        "caf\\xe9.md": "name: the file's name is not valid Unicode",
        "caf\\xe9/": "name: the folder's name is not valid Unicode",
    }


def test_a_folder_that_cannot_be_listed_is_skipped(root: Path) -> None:
    write(root, "a.md", "closed/b.md")
    with closed(root / "closed"):
        found = selected(root)
    assert found.files == ("a.md",)
    assert reasons(found) == {"closed/": "unreadable: the folder cannot be listed: Permission denied"}


def test_a_limit_below_one_byte_is_refused(root: Path) -> None:
    with pytest.raises(InputError, match="max_bytes must be at least 1, got 0"):
        selected(root, max_bytes=0)
