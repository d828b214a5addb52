from collections.abc import Mapping

import pytest
import torch

from hipporag_torch.extractions import Extractions
from hipporag_torch.types import Extraction


def made_by(producer: str) -> Extraction:
    return Extraction(producer=producer)


A, B, C, D = map(made_by, "abcd")


class Store:
    """Holds extractions by row, and counts how often they are read."""

    def __init__(self, rows: Mapping[int, Extraction]) -> None:
        self.rows = rows
        self.reads = 0

    def read(self) -> Mapping[int, Extraction]:
        self.reads += 1
        return self.rows


def test_it_is_a_sequence():
    extractions = Extractions.of([A, B, C])
    assert (len(extractions), extractions[0], extractions[-1], extractions[1:]) == (3, A, C, (B, C))
    assert extractions == [A, B, C]
    assert extractions == Extractions.of([A, B, C])
    assert extractions != (A, B)
    assert extractions != (A, B, D)
    assert C in extractions
    with pytest.raises(IndexError):
        extractions[3]


def test_what_is_stored_is_read_once_when_it_is_first_asked_for():
    store = Store({0: A, 2: C})
    extractions = Extractions(count=3, fresh={1: B}, stored=store.read)
    assert (len(extractions), extractions[1], store.reads) == (3, B, 0)
    assert extractions[0] == A
    assert list(extractions) == [A, B, C]
    assert store.reads == 1


def test_a_change_reads_nothing_and_renumbers_what_is_fresh_and_what_is_not():
    store = Store({0: A, 2: C, 3: D})
    extractions = Extractions(count=4, fresh={1: B}, stored=store.read)
    new_idx = torch.tensor([-1, 2, 3, 0])
    again = made_by("again")
    changed = extractions.changed(new_idx, count=4, replaced={1: A, 3: again})
    last = changed.changed(torch.tensor([3, 2, 1, 0]), count=4, replaced={})
    assert store.reads == 0
    assert changed.fresh == {1: A, 2: B, 3: again}
    assert last.fresh == {2: A, 1: B, 0: again}
    assert changed[0] == D
    assert last[3] == D
    assert store.reads == 1


def test_fresh_ones_take_the_place_of_stored_ones():
    extractions = Extractions(count=2, fresh={}, stored=Store({0: A, 1: B}).read)
    changed = extractions.changed(torch.tensor([0, 1]), count=2, replaced={1: C})
    assert changed == [A, C]
    assert extractions == [A, B]
