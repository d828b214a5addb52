"""What the characters of a text say about where it may be cut: words, scripts without spaces, graphemes."""

from collections.abc import Iterator

import regex

# Written without spaces; any two of these characters may part.
_IDEOGRAPHIC = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}ー々〆"
# Thai, Lao, Khmer, Burmese and their kin: also without spaces, but where a word ends takes a dictionary.
_SOUTH_EAST_ASIAN = r"\p{Line_Break=SA}"
_LETTER = r"\p{L}\p{N}\p{M}"
_JOINERS = r"\u200c\u200d"

# Flags are paired here: for each of them, \X alone looks back to the first of its row, which is quadratic.
_GRAPHEME = r"(?:\p{Regional_Indicator}{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X)"

_ONE_BY_ONE = rf"[{_IDEOGRAPHIC}\p{{Hangul}}{_SOUTH_EAST_ASIAN}]"
_MAX_WORD = 64
# The limit keeps a text without a single space, in whatever script, from being one token.
_WORD = regex.compile(
    rf"(?={_ONE_BY_ONE}){_GRAPHEME}"
    r"|\p{Nd}{1,20}+(?![\p{L}\p{M}])(?:[.,]\p{Nd}{1,20}+){0,2}+\p{M}*+"
    rf"|(?:(?!{_ONE_BY_ONE})[{_LETTER}])(?:(?!{_ONE_BY_ONE})[{_LETTER}{_JOINERS}])"
    rf"{{0,{_MAX_WORD - 1}}}+\p{{M}}*+"
    rf"|(?!\s){_GRAPHEME}",
    regex.V1,
)

# Between two of these, a word goes on.
_IN_WORD = rf"(?:(?![{_IDEOGRAPHIC}{_SOUTH_EAST_ASIAN}])[{_LETTER}{_JOINERS}])"
_INSIDE_WORD = regex.compile(rf"(?<={_IN_WORD}){_IN_WORD}", regex.V1)
_BETWEEN_WORDS = regex.compile(
    r"(?<=\s)|(?=\s)"
    rf"|(?<![\p{{Ps}}\p{{Pi}}])(?=[{_IDEOGRAPHIC}])"
    rf"|(?<=[{_IDEOGRAPHIC}])(?={_IN_WORD})",
    regex.V1,
)

_NOT_ASCII = regex.compile(r"[^\x00-\x7f]++(?:[\x00-\x7f][^\x00-\x7f]++)*+")
_GRAPHEMES = regex.compile(_GRAPHEME)


def words(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every word, number, punctuation mark or symbol; of every character without spaces.

    The characters that count one by one are Han, Kana, Bopomofo, Hangul and those of South-East Asia, each
    with its marks. A word or number of over 64 characters counts as several.
    """
    return (match.span() for match in _WORD.finditer(text))


def inside_word(text: str, position: int) -> bool:
    """Whether a cut at `position` would part two letters or digits of a script that puts spaces."""
    return _INSIDE_WORD.match(text, position) is not None


def between_words(text: str, position: int) -> bool:
    """Whether `position` is beside whitespace or parts ideographs, so that punctuation stays where it was."""
    return _BETWEEN_WORDS.match(text, position) is not None


def inside_graphemes(text: str) -> Iterator[int]:
    """The positions, ascending, that lie inside a character as readers see it: an emoji, a letter's accents.

    Whitespace and what follows it are apart, even an accent: it is trimmed from both sides of a cut anyway.
    """
    for run in _NOT_ASCII.finditer(text):
        # One ASCII character more on either side: it may carry an accent or follow a prefix.
        for match in _GRAPHEMES.finditer(text, max(0, run.start() - 1), min(len(text), run.end() + 1)):
            start, end = match.span()
            if end - start > 1:
                yield from range(start + 1 + text[start].isspace(), end)
