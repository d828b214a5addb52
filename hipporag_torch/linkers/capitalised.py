"""Names in a question by their capitals alone."""

import regex

from hipporag_torch.linkers.resolution import is_name

MAX_WORDS = 8
"""A longer run of capitalised words is a heading, not a name."""

# Letters of scripts with case, marks and digits. Other scripts have no capitals, and often no spaces.
_PART = r"[\p{Lu}\p{Ll}\p{Lt}\p{Lm}\p{M}\p{N}]+"
_WORD = regex.compile(rf"{_PART}(?:[-‐–'’·]{_PART})*")
_CAPITALISED = regex.compile(r"\P{L}*[\p{Lu}\p{Lt}]")
_POSSESSIVE = regex.compile(r"(?<=.)['’][sS]$")
_UNCAPITALISED_LETTER = regex.compile(r"[\p{Ll}\p{Lo}]")
_SPACE = regex.compile(r"\s+|\s*&\s*")
_PERIOD = regex.compile(r"\.\s*")
_MAX_ABBREVIATION = 2


def capitalised_spans(question: str) -> list[str]:
    """The runs of words that begin with a capital letter, in order, without repetitions.

    A run goes on over spaces, "&", numbers ("Apollo 11") and the period of an initial or a short title
    ("J. K. Rowling", "St. Louis"); it ends at other punctuation and at a possessive ("Ada Vale's"). Stop
    words, question words and "I" do not begin one. A run of more than 8 words is left out.

    Without a letter that could have been a capital and is not ("WHO FOUNDED OSLO") capitals say nothing:
    there are none then.
    """
    if not _UNCAPITALISED_LETTER.search(question):
        return []
    runs: list[list[regex.Match[str]]] = [[]]
    for word in _WORD.finditer(question):
        if runs[-1] and not _goes_on(question, runs[-1][-1], word):
            runs.append([])
        if _CAPITALISED.match(word[0]) or (runs[-1] and word[0].isnumeric()):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    return list(dict.fromkeys(span for run in runs if (span := _span(question, run))))


def _goes_on(question: str, last: regex.Match[str], word: regex.Match[str]) -> bool:
    """Whether what stands between two words keeps them together."""
    between = question[last.end() : word.start()]
    if _POSSESSIVE.search(last[0]):
        return False
    if _PERIOD.fullmatch(between):
        return len(last[0]) <= _MAX_ABBREVIATION
    return _SPACE.fullmatch(between) is not None


def _span(question: str, run: list[regex.Match[str]]) -> str:
    """The text of a run without the words that begin no name; empty if none is left, or too many are."""
    while run and not _begins_a_name(run[0][0]):
        run = run[1:]
    if not 1 <= len(run) <= MAX_WORDS:
        return ""
    return _POSSESSIVE.sub("", question[run[0].start() : run[-1].end()])


def _begins_a_name(word: str) -> bool:
    # Of "I'm" and "What's" what stands before the apostrophe counts.
    head = regex.split("['’]", word)[0]
    return head != "I" and is_name(head)
