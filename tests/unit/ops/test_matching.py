"""Sequences inside others, against a search in plain Python."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.ops.matching import PhraseMatcher, SequenceTable
from hipporag_torch.ops.ragged import Ragged

Rows = list[list[int]]
TOKENS = st.integers(0, 2)


def lists_of(ragged: Ragged) -> Rows:
    return [ragged.values[ragged.row == row].tolist() for row in range(ragged.num_rows)]


def words(*texts: str) -> Ragged:
    """One token per letter."""
    return Ragged.of([list(map(ord, text)) for text in texts])


def table_of(*known: str) -> SequenceTable:
    return SequenceTable.of(words(*known), torch.ones(len(known), dtype=torch.bool))


def inside(known: list[str], *texts: str) -> Rows:
    return lists_of(table_of(*known).inside(words(*texts)))


def found_plainly(known: Rows, text: list[int]) -> list[int]:
    """Every place with the longest that begins there, without those that lie within another; their rows."""
    spans: list[tuple[int, int]] = []
    for start in range(len(text)):
        fits = [len(one) for one in known if 0 < len(one) <= 32 and text[start : start + len(one)] == one]
        if fits:
            spans.append((start, start + max(fits)))
    whole = [
        (start, stop)
        for start, stop in spans
        if not any(a <= start and stop <= b and (a, b) != (start, stop) for a, b in spans)
    ]
    return sorted(row for row, one in enumerate(known) if any(text[a:b] == one for a, b in whole))


class TestInside:
    def test_the_longest_that_begins_at_a_place_counts(self):
        assert inside(["new", "newyork", "newyorkcity"], "inewyorks") == [[1]]

    def test_what_lies_within_another_does_not_count_wherever_it_begins_or_ends(self):
        assert inside(["bcd", "b", "c", "cd"], "abcde") == [[0]]

    def test_the_same_counts_where_it_stands_by_itself(self):
        assert inside(["newyork", "york"], "yorkinnewyork") == [[0, 1]]

    def test_those_that_overlap_both_count(self):
        assert inside(["abc", "cde"], "abcde") == [[0, 1]]

    def test_a_beginning_alone_is_not_found(self):
        assert inside(["abcd"], "abc", "abxd", "xabcdx") == [[], [], [0]]

    def test_none_reaches_over_the_end_of_a_sequence(self):
        assert inside(["ab", "cab"], "ca", "b", "", "ab") == [[], [], [], [0]]

    def test_a_long_match_hides_nothing_of_the_next_sequence(self):
        assert inside(["abc", "bc"], "abc", "bc") == [[0], [1]]

    def test_all_that_have_the_same_tokens_are_found_once(self):
        assert inside(["ab", "c", "ab"], "abcab") == [[0, 1, 2]]

    @pytest.mark.parametrize(("length", "found"), [(31, [0]), (32, [0]), (33, []), (40, [])])
    def test_up_to_32_tokens(self, length: int, found: list[int]):
        tokens = list(range(length))
        table = SequenceTable.of(Ragged.of([tokens]), torch.tensor([True]))
        assert lists_of(table.inside(Ragged.of([[-1, *tokens, -1]]))) == [found]
        assert lists_of(table.equal(Ragged.of([tokens]))) == [[0]]

    def test_what_a_longer_than_32_begins_with_is_found_by_itself(self):
        table = SequenceTable.of(Ragged.of([list(range(40)), [0, 1]]), torch.tensor([True, True]))
        assert lists_of(table.inside(Ragged.of([list(range(40))]))) == [[1]]

    def test_only_the_wanted_are_in_the_table(self):
        table = SequenceTable.of(words("ab", "b"), torch.tensor([False, True]))
        assert lists_of(table.inside(words("ab"))) == [[1]]

    @pytest.mark.parametrize("known", [[], [""], ["", ""]])
    def test_nothing_is_known(self, known: list[str]):
        assert inside(known, "ab", "") == [[], []]
        assert lists_of(table_of(*known).equal(words("ab", ""))) == [[], []]

    def test_nothing_is_asked(self):
        assert inside(["a"]) == []
        assert inside(["a"], "") == [[]]
        assert lists_of(table_of("a").equal(words())) == []

    def test_numbers_of_tokens_use_all_64_bits(self):
        wide = [2**63 - 1, -(2**63), -1]
        table = SequenceTable.of(Ragged.of([wide, wide[1:], [0]]), torch.ones(3, dtype=torch.bool))
        assert lists_of(table.inside(Ragged.of([[5, *wide], wide[1:], [0, 0]]))) == [[0], [1], [2]]

    @given(
        st.lists(st.lists(TOKENS, max_size=4), max_size=6),
        st.lists(st.lists(TOKENS, max_size=9), max_size=4),
    )
    def test_it_finds_what_a_plain_search_finds(self, known: Rows, texts: Rows):
        table = SequenceTable.of(Ragged.of(known), torch.ones(len(known), dtype=torch.bool))
        assert lists_of(table.inside(Ragged.of(texts))) == [found_plainly(known, text) for text in texts]


@given(
    st.lists(st.tuples(st.lists(TOKENS, max_size=3), st.booleans()), max_size=6),
    st.lists(st.lists(TOKENS, max_size=3), max_size=5),
)
def test_equal_gives_the_wanted_rows_with_the_same_tokens(
    known: list[tuple[list[int], bool]], texts: Rows
) -> None:
    wanted = torch.tensor([is_wanted for _, is_wanted in known], dtype=torch.bool)
    table = SequenceTable.of(Ragged.of([tokens for tokens, _ in known]), wanted)
    assert lists_of(table.equal(Ragged.of(texts))) == [
        [row for row, (tokens, is_wanted) in enumerate(known) if is_wanted and tokens == text and text]
        for text in texts
    ]


def test_names_are_found_inside_and_every_phrase_by_the_whole(device: torch.device) -> None:
    phrases = words("oslo", "rain", "", "rain").to(device)
    named = torch.tensor([True, False, True, False], device=device)
    matcher = PhraseMatcher.of(phrases, named)
    texts = words("rainofoslo", "rain", "").to(device)
    found, exact = matcher.find(texts), matcher.exact(texts)
    assert (lists_of(found), lists_of(exact)) == ([[0], [], []], [[], [1, 3], []])
    assert found.values.device.type == exact.row_ptr.device.type == device.type
