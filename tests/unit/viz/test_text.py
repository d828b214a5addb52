import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.types import SourceShares
from hipporag_torch.viz.text import of_own, percent, shares_text, text_width, wrap


@given(st.text(max_size=200), st.floats(30, 400), st.integers(1, 4))
def test_lines_fit(text: str, width: float, max_lines: int) -> None:
    lines = wrap(text, width, 15.0, max_lines=max_lines)
    assert len(lines) <= max_lines
    assert all(text_width(line, 15.0) <= width for line in lines)
    assert all(line == line.strip() and line.isprintable() for line in lines)


def test_short_text_is_kept() -> None:
    assert wrap("rye  bread\n", 200, 15.0, max_lines=2) == ("rye bread",)
    assert wrap("", 200, 15.0, max_lines=2) == ()


def test_words_break_only_where_they_must() -> None:
    assert wrap("rye bread", 45, 15.0, max_lines=2) == ("rye", "bread")
    assert "".join(wrap("a" * 30, 60, 15.0, max_lines=9)) == "a" * 30


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    lines = wrap("one two three four five six", 60, 15.0, max_lines=2)
    assert lines[-1].endswith("…")


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1.0, "100.00%"), (0.0123, "1.23%"), (0.0001, "0.01%"), (0.00004, "0.004%"), (0.0, "0.00%")],
)
def test_percent(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        ((), ""),
        ((("facts", 0.07), ("entities", 0.123)), "entities 12, facts 7"),
        ((("facts", 1.0),), "facts 100"),
        ((("facts", 0.0099), ("passages", 0.00996)), "passages 1, facts 1.0"),
        ((("facts", 0.0042), ("passages", 0.0001)), "facts 0.4, passages <0.1"),
    ],
)
def test_shares(sources: SourceShares, shown: str) -> None:
    assert shares_text(sources) == shown


def test_shares_of_their_own_sum() -> None:
    assert of_own((("facts", 0.1), ("entities", 0.3))) == (
        ("facts", pytest.approx(0.25)),
        ("entities", pytest.approx(0.75)),
    )
    assert of_own(()) == of_own((("facts", 0.0),)) == ()


@given(st.floats(0, 1))
def test_percent_of_any_share(share: float) -> None:
    assert percent(share).endswith("%")
