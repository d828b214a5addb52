"""Rows of different lengths against plain lists."""

from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.ops.ragged import Ragged

Rows = list[list[int]]
ROWS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=7)


def lists_of(ragged: Ragged) -> Rows:
    ends = ragged.row_ptr.tolist()
    return [ragged.values[start:stop].tolist() for start, stop in pairwise(ends)]


@given(ROWS)
def test_rows_come_back_with_their_lengths_and_the_row_of_each_entry(rows: Rows) -> None:
    ragged = Ragged.of(rows)
    assert lists_of(ragged) == rows
    assert ragged.num_rows == len(rows)
    assert ragged.lengths.tolist() == list(map(len, rows))
    assert ragged.row.tolist() == [number for number, row in enumerate(rows) for _ in row]


@given(ROWS)
def test_entries_sorted_by_row_make_the_rows_again_and_empty_ones_at_the_end(rows: Rows) -> None:
    ragged = Ragged.of(rows)
    again = Ragged.grouped(ragged.row, ragged.values, num_rows=len(rows) + 2)
    assert lists_of(again) == [*rows, [], []]


@given(ROWS, ROWS)
def test_joined_rows_follow_each_other(first: Rows, second: Rows) -> None:
    assert lists_of(Ragged.of(first).joined(Ragged.of(second))) == first + second


@given(ROWS, st.data())
def test_rows_are_selected_in_any_order_and_more_than_once(rows: Rows, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    selected = Ragged.of(rows).select(torch.tensor(wanted, dtype=torch.int64))
    assert lists_of(selected) == [rows[row] for row in wanted]


@given(ROWS, st.data())
def test_padded_rows_stand_side_by_side(rows: Rows, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    values, held = Ragged.of(rows).padded(torch.tensor(wanted, dtype=torch.int64))
    width = max((len(rows[row]) for row in wanted), default=0)
    assert values.shape == held.shape == (len(wanted), width)
    for row, its, holds in zip(wanted, values.tolist(), held.tolist(), strict=True):
        assert its == rows[row] + [0] * (width - len(rows[row]))
        assert holds == [True] * len(rows[row]) + [False] * (width - len(rows[row]))


def test_padded_rows_keep_the_shape_that_they_are_asked_in(device: torch.device) -> None:
    ragged = Ragged.of([[], [7], [8, 9]]).to(device)
    values, held = ragged.padded(torch.tensor([[2, 0], [1, 2]], device=device))
    assert values.tolist() == [[[8, 9], [0, 0]], [[7, 0], [8, 9]]]
    assert held.tolist() == [[[True, True], [False, False]], [[True, False], [True, True]]]
    assert values.device.type == held.device.type == device.type


def test_all_works_on_every_device(device: torch.device) -> None:
    ragged = Ragged.of([[1], [], [2, 3]]).to(device)
    chosen = ragged.joined(ragged).select(torch.tensor([5, 0, 1], device=device))
    assert lists_of(chosen) == [[2, 3], [1], []]
    assert chosen.values.device.type == chosen.row.device.type == device.type
