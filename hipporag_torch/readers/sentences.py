"""Where sentences end."""

import re

# After a full stop only before what can begin a sentence: "No. 4" and "3.5" are not ends.
SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)]))\s+(?=[\"'“‘(]*[^\W\d_a-z])|(?<=[。！？])\s*")
# An initial, or a short form that a name follows: their full stop ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(.\"“])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Prof|Mt|Ft|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Jr|Sr|vs)\.\Z"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, whitespace squeezed; lines are sentences of their own."""
    parts = (part for line in text.splitlines() for part in SENTENCE_END.split(line))
    return [sentence for part in parts if (sentence := " ".join(part.split()))]


def first_sentence(line: str) -> str:
    """What stands before the first end of a sentence in a line; initials and titles of persons are none."""
    for end in SENTENCE_END.finditer(line):
        if not _ABBREVIATION.search(line, max(0, end.start() - 8), end.start()):
            return line[: end.start()]
    return line
