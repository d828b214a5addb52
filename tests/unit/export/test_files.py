from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.export.files import drafts


def test_nothing_appears_before_all_is_written(tmp_path: Path) -> None:
    paths = [tmp_path / "sub" / "a", tmp_path / "b"]
    with drafts(paths, overwrite=False) as written:
        for draft in written:
            draft.write_text("whole")
        assert not any(path.exists() for path in paths)
    assert [path.read_text() for path in paths] == ["whole", "whole"]


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "a"
    old.write_text("old")

    def fail_halfway() -> None:
        with drafts([old, tmp_path / "b"], overwrite=True) as written:
            written[0].write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_paths_that_cannot_be_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a folder"), drafts([tmp_path], overwrite=True):
        pass
    for blocked in (tmp_path / "file" / "a", tmp_path / "file" / "sub" / "a"):
        with pytest.raises(InputError, match="a file stands in its place"), drafts([blocked], overwrite=True):
            pass
