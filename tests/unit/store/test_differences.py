"""What differs between two canonical sequences."""

import pytest

from hipporag_torch.store.differences import difference


@pytest.mark.parametrize(
    ("old", "new", "old_row", "gone"),
    [
        ("", "", [], []),
        ("abc", "abc", [0, 1, 2], []),
        ("", "ab", [-1, -1], []),
        ("ab", "", [], [0, 1]),
        ("bdf", "abcdg", [-1, 0, -1, 1, -1], [2]),
        ("xy", "ab", [-1, -1], [0, 1]),
    ],
)
@pytest.mark.parametrize("same_objects", [True, False])
def test_rows_of_the_same_entries(
    old: str, new: str, old_row: list[int], gone: list[int], same_objects: bool
) -> None:
    before = [f"entry {letter}" for letter in old]
    objects = dict(zip(old, before, strict=True)) if same_objects else {}
    after = [objects.get(letter, f"entry {letter}") for letter in new]
    found = difference(before, after)
    assert found.old_row.tolist() == old_row
    assert found.gone.tolist() == gone
    assert found.fresh == [row for row, old in enumerate(old_row) if old < 0]


def test_equal_and_same_objects_may_be_mixed() -> None:
    kept, a, b = ("kept", 1), ("a", 2), ("b", 3)
    found = difference([a, kept, b], [("a", 2), kept, ("c", 4)])
    assert found.old_row.tolist() == [0, 1, -1]
    assert found.gone.tolist() == [2]
