import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.viz.text import percent, text_width, wrap


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


@given(st.floats(0, 1))
def test_percent_of_any_share(share: float) -> None:
    assert percent(share).endswith("%")
