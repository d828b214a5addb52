"""Sizes, and paths that must stay below the roots."""

from pathlib import Path
from typing import Any

import pytest

from hipporag_torch import Document
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.service.limits import Limits, Roots, depth_of

SMALL = Limits(
    text_chars=10, question_chars=10, documents=2, batch_chars=15, metadata_depth=2, metadata_bytes=40
)


def nested(levels: int) -> dict[str, Any]:
    inner: Any = 1
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([], "empty"),
        ([Document("a")] * 3, "3 documents, at most 2"),
        ([Document("x" * 11)], "document 0 has 11 characters, at most 10"),
        ([Document("a"), Document("b", "s" * 11)], "source_id of document 1"),
        ([Document("x" * 8)] * 2, "16 characters together, at most 15"),
        ([Document("a", None, nested(3))], "3 levels deep, at most 2"),
        ([Document("a", None, {"k": "ü" * 20})], "takes 49 bytes, at most 40"),
    ],
)
def test_documents_beyond_a_limit_are_refused_by_name(documents: list[Document], said: str):
    with pytest.raises(InputError, match=said):
        SMALL.check_documents(documents)


def test_documents_at_the_limits_pass():
    SMALL.check_documents([Document("x" * 10, "s" * 10, nested(2)), Document("x" * 5)])
    SMALL.check_question("x" * 10)


def test_a_question_and_names_beyond_a_limit_are_refused():
    with pytest.raises(InputError, match="the question has 11 characters"):
        SMALL.check_question("x" * 11)
    with pytest.raises(InputError, match="texts has 3 entries"):
        SMALL.check_names("texts", ["a"] * 3)
    with pytest.raises(InputError, match="one of texts has 11"):
        SMALL.check_names("texts", ["x" * 11])


def test_ten_megabytes_are_more_than_the_default_takes():
    with pytest.raises(InputError, match="10,000,000 characters, at most 1,000,000"):
        Limits().check_documents([Document("x" * 10_000_000)])


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_a_limit_that_is_no_count_is_refused(value: Any):
    with pytest.raises(ConfigError, match=r"serve\.limits\.documents"):
        Limits(documents=value)


@pytest.mark.parametrize(
    ("value", "depth"), [(1, 0), ({}, 1), ([], 1), ({"a": [1, {"b": 2}]}, 3), (nested(5000), 5000)]
)
def test_depth_counts_lists_and_mappings_however_deep(value: Any, depth: int):
    assert depth_of(value) == depth


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """root/notes is inside; outside, and ways to it."""
    for folder in ("root/notes", "root-too", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root/file.md").write_text("text")
    (tmp_path / "root/way_out").symlink_to(tmp_path / "outside")
    (tmp_path / "root/way_in").symlink_to(tmp_path / "root/notes")
    (tmp_path / "root/loop").symlink_to(tmp_path / "root/loop")
    (tmp_path / "linked_root").symlink_to(tmp_path / "root")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("root", "root"),
        ("root/notes", "root/notes"),
        ("root/notes/../notes/", "root/notes"),
        ("root/way_in", "root/notes"),
        ("linked_root/notes", "root/notes"),
    ],
)
def test_a_folder_below_a_root_is_resolved(tree: Path, path: str, folder: str):
    assert Roots([tree / "linked_root"]).folder(str(tree / path)) == tree / folder


@pytest.mark.parametrize(
    "path",
    [
        "outside",
        "root-too",
        "root/../outside",
        "root/way_out",
        "root/loop/x",
        "absent",
        "root/notes/../../outside",
    ],
)
def test_a_path_that_leads_outside_is_refused_whether_it_exists_or_not(tree: Path, path: str):
    with pytest.raises(InputError, match=r"outside of the folders|not a folder that exists") as caught:
        Roots([tree / "root"]).folder(str(tree / path))
    if "loop" not in path:
        assert "outside of the folders that this server may read" in str(caught.value)


@pytest.mark.parametrize("path", ["root/file.md", "root/absent", "root/loop"])
def test_what_is_no_folder_is_refused(tree: Path, path: str):
    with pytest.raises(InputError, match=r"not a folder that exists|outside"):
        Roots([tree / "root"]).folder(str(tree / path))


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_what_is_no_path_is_refused(tree: Path, path: str):
    with pytest.raises(InputError, match="path must name a folder"):
        Roots([tree / "root"]).folder(path)


def test_a_relative_path_is_below_the_only_root(tree: Path):
    assert Roots([tree / "root"]).folder("notes") == tree / "root/notes"
    with pytest.raises(InputError, match="outside"):
        Roots([tree / "root"]).folder("../outside")
    with pytest.raises(InputError, match="must be absolute"):
        Roots([tree / "root", tree / "outside"]).folder("notes")


def test_without_roots_nothing_may_be_read(tree: Path):
    with pytest.raises(InputError, match="without --root"):
        Roots([]).folder(str(tree / "root"))


def test_a_root_that_is_no_folder_is_refused_at_launch(tree: Path):
    with pytest.raises(ConfigError, match="is not a folder"):
        Roots([tree / "root/file.md"])
