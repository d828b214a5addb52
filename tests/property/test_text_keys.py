import sys

from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.text import TextOptions, reference_key, unicode_key
from hipporag_torch.types import Triple

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TOUGH = st.text("aÅI\u0130\u0131ſßΣςK\u212a\u00ad\u200b\u200c\u200d\ufeff\u0303\u0345\u00a0\u3000 \tｶﾞ가ﷺ+#1")


@given(text=TEXT | TOUGH)
def test_a_unicode_key_is_a_fixed_point(text: str) -> None:
    key = unicode_key(text)
    assert unicode_key(key) == key


def test_every_character_alone_has_a_key_that_is_a_fixed_point() -> None:
    characters = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    keys = {unicode_key(character) for character in characters}
    assert {key for key in keys if unicode_key(key) != key} == set()
    assert len(keys) > 1_000_000


@given(text=TEXT | TOUGH)
def test_a_unicode_key_has_single_inner_spaces_and_no_case(text: str) -> None:
    key = unicode_key(text)
    assert key == " ".join(key.split())
    assert key == key.casefold()


@given(text=TEXT | TOUGH, around=st.text(" \t\n\u200b\u00ad\ufeff\u3000", max_size=3))
def test_what_cannot_be_seen_around_a_text_does_not_count(text: str, around: str) -> None:
    assert unicode_key(around + text + around) == unicode_key(text)


@given(text=TEXT | TOUGH)
def test_a_reference_key_is_a_fixed_point_of_ascii(text: str) -> None:
    key = reference_key(text)
    assert reference_key(key) == key
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789 ")


@given(parts=st.tuples(TEXT, TEXT, TEXT))
def test_a_fact_has_three_keys_or_is_none(parts: tuple[str, str, str]) -> None:
    text = TextOptions()
    fact = text.fact(Triple(*parts))
    keys = tuple(text.phrase(part) for part in parts)
    assert fact == (Triple(*keys) if all(keys) else None)
