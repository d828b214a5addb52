"""The facts that a model chose, found among those that it was shown: by number, or written out exactly."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from hipporag_torch.text import unicode_key
from hipporag_torch.types import Fact

Dropped = Literal["out_of_range", "not_shown", "repeated", "not_a_number", "beyond_limit", "cut"]

_NUMBER = re.compile(r"\s*(-?[0-9]+)\s*\.?\s*")
_NUMBERED = re.compile(r"\s*([0-9]{1,9})[.):]\s*(.+)", re.DOTALL)
# Longer numbers are no row, and Python refuses to read very long ones.
_MAX_DIGITS = 9


def fact_lines(shown: Sequence[Fact]) -> str:
    """The list that a model chooses from: one fact a line, numbered from 1."""
    return "\n".join(f"{number}. {_written(fact)}" for number, fact in enumerate(shown, start=1))


def is_choice(value: Any) -> bool:
    """Whether a value of a reply can be meant as a choice, sensible or not."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | str) or _parts(value) is not None


def chosen_rows(choices: Sequence[Any], shown: Sequence[Fact]) -> tuple[list[int], Counter[Dropped]]:
    """The rows of `shown` that `choices` name, in their order, and how many name none, by kind.

    A choice is a number from 1, also as a string or a float without a fraction; or a fact, as the line it
    was shown as, with or without its number, or a triple as its three parts. A fact has to equal one that was
    shown after normalising both; it is never matched to a similar one.
    """
    keys = [_key(_written(fact)) for fact in shown]
    rows: list[int] = []
    dropped: Counter[Dropped] = Counter()
    for choice in choices:
        row = _row(choice, keys)
        if isinstance(row, str):
            dropped[row] += 1
        elif row in rows:
            dropped["repeated"] += 1
        else:
            rows.append(row)
    return rows, dropped


def _row(choice: Any, keys: Sequence[str]) -> int | Dropped:
    if isinstance(choice, float) and choice.is_integer():
        choice = int(choice)
    if isinstance(choice, int) and not isinstance(choice, bool):
        return choice - 1 if 1 <= choice <= len(keys) else "out_of_range"
    if isinstance(choice, str):
        return _named(choice, keys)
    parts = _parts(choice)
    if parts is not None:
        return _written_out(" | ".join(parts), keys)
    return "not_shown" if isinstance(choice, list | dict) else "not_a_number"


def _named(text: str, keys: Sequence[str]) -> int | Dropped:
    """The row of a number or fact that stands in a string."""
    if number := _NUMBER.fullmatch(text):
        return _row(int(number[1]), keys) if len(number[1]) <= _MAX_DIGITS else "out_of_range"
    if (line := _NUMBERED.fullmatch(text)) and 1 <= int(line[1]) <= len(keys):
        row = int(line[1]) - 1
        if _key(line[2]) == keys[row]:
            return row
    return _written_out(text, keys)


def _written_out(text: str, keys: Sequence[str]) -> int | Dropped:
    key = _key(text)
    return keys.index(key) if key in keys else "not_shown"


def _parts(value: Any) -> list[str] | None:
    """The three strings of a fact that was written as a list or an object."""
    parts = list(value.values()) if isinstance(value, dict) else value
    if isinstance(parts, list) and len(parts) == 3 and all(isinstance(part, str) for part in parts):
        return parts
    return None


def _written(fact: Fact) -> str:
    """A triple by its parts, a sentence by its text; on one line, as the list is one of lines."""
    return " ".join(" | ".join(fact.parts).split())


def _key(text: str) -> str:
    return " | ".join(unicode_key(part) for part in text.split("|"))
