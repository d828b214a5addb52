"""What is done to a passage's text before it is parsed."""

import re
from collections.abc import Iterator

from hipporag_torch.extractors.dependency_phrases import clean

_MAX_TITLE = 150
_BRACKETED = re.compile(r"\s*\([^()]*\)\s*$")
_EMPTY_BRACKETS = re.compile(r"\s*\([\s,;:/–-]*\)")
_PRONUNCIATION = re.compile(r"\s*\((?:[A-Z][a-z]+: |/|\[)[^()]{0,160}\)")
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH},? \d{{3,4}}|{_MONTH} \d{{1,2}}, \d{{3,4}}|{_MONTH} \d{{4}})\b")
_BRACKETS = re.compile(r"\s*\(([^()]{4,160})\)")
_START = 250
"""How far into a text the brackets with a person's dates are looked for."""

Ending = tuple[str, str]


def title_and_text(passage: str) -> tuple[str, str]:
    """(first line, the rest) if the passage has several lines and the first looks like a title."""
    # Half a surrogate pair is no text; spaCy raises on it.
    passage = passage.encode("utf-8", "replace").decode("utf-8")
    first, _, rest = passage.strip().partition("\n")
    first = first.strip()
    is_title = rest.strip() and len(first) <= _MAX_TITLE and not first.endswith((".", ":", ";", "{"))
    return (first, rest.strip()) if is_title else ("", passage.strip())


def title_name(title: str) -> str:
    """What a title names: "Blue Harbour" of "Blue Harbour (film)"; perhaps nothing."""
    return clean(_BRACKETED.sub("", title))


def lifespan(text: str) -> tuple[str, list[Ending]]:
    """The text without "(3 May 1901, Oslo – 9 June 1980)", which parsers trip over, and what that says."""
    text = _EMPTY_BRACKETS.sub("", text)
    text = _PRONUNCIATION.sub("", text[:_START]) + text[_START:]
    for match in _BRACKETS.finditer(text, 0, _START):
        halves = re.split(r"\s[–—-]\s|(?<=\d)[–—](?=\w)", match[1])
        found = [_DATE.search(half) for half in halves]
        born = len(halves) == 1 and "born" in halves[0].lower()
        if any(found) and (len(halves) == 2 or born):
            endings = []
            for verb, half, date in zip(("was born", "died"), halves, found, strict=False):
                endings.extend(_dates_and_place(verb, half, date))
            return text[: match.start()] + text[match.end() :], endings
    return text, []


def _dates_and_place(verb: str, half: str, date: re.Match[str] | None) -> Iterator[Ending]:
    if date is None:
        return
    yield f"{verb} on", date[0]
    place = half[date.end() :].strip(" ,;").removeprefix("in ")
    if place[:1].isupper() and len(place) < 60:
        yield f"{verb} in", place


def pieces(text: str, max_chars: int) -> Iterator[str]:
    """The text in pieces of at most `max_chars`, cut after a paragraph, sentence or word; at least one."""
    start = 0
    while len(text) - start > max_chars:
        window = text[start : start + max_chars]
        ends = (window.rfind(mark) + len(mark) for mark in ("\n\n", "\n", ". ", "。", " "))
        cut = next((end for end in ends if end > max_chars // 2), max_chars)
        yield window[:cut]
        start += cut
    yield text[start:]
