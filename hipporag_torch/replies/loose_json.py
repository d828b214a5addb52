"""JSON values wherever they stand in a text, in one pass, without recursion.

The grammar is JSON's, and what models do to it where there is only one thing that can be meant: trailing
commas, raw control characters, unknown escapes, strings in single quotes, Python's None, True and False.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from hipporag_torch.replies.reasoning import TAG, reasoning_end

MAX_DEPTH = 32
"""Lists and objects within each other; what is nested deeper is not read."""

MAX_VALUES = 10_000
"""Places where a value may begin. A text with more of them, one after the other, is noise."""

_START = re.compile(rf"[\[{{]|{TAG}", re.IGNORECASE)
_TOKEN = re.compile(
    r"""\s*+(?:
      "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+(?:[,:]|(?=[\]}])|\Z)
    | '(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'\s*+(?:[,:]|(?=[\]}])|\Z)
    | (?P<empty>\[\s*+\]|\{\s*+\})\s*+(?:,|(?=[\]}]))
    | (?P<open>[\[{])
    | (?P<close>[\]}])\s*+,?+
    | (?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)\s*+(?:,|(?=[\]}]))
    | (?P<word>true|false|null|True|False|None|NaN|-?Infinity)\s*+(?:,|(?=[\]}])|\Z)
    | (?P<other>.|\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CUT_WORD = re.compile(r"(?:[-+.eE\d]++\s*+|[tT]r?u?|[fF]a?l?s?|[nN](?:ul?|on?|a)?|-?In?f?\w*+)\Z")
_QUOTES = {mark: re.compile(rf"(?<!\\){mark}") for mark in "\"'"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {c: c for c in "\"'\\/"}
_WORDS = {"true": True, "True": True, "false": False, "False": False}


@dataclass(frozen=True)
class JsonValue:
    """A list or an object. One that the text's end has cut lacks the entry that it was cut in."""

    value: Any
    cut: bool = False


@dataclass
class JsonValues:
    """What a text holds, in its order, behind its reasoning.

    `broken` says that something began as JSON and went wrong, `unclosed` that the reasoning has no end,
    `too_many` that the text has so many pieces that it was not read to its end.
    """

    values: list[JsonValue] = field(default_factory=list)
    broken: bool = False
    unclosed: bool = False
    too_many: bool = False


def json_values(text: str) -> JsonValues:
    """All lists and objects of a text that are not within each other. Never raises; linear in the length."""
    found = JsonValues()
    position = tried = 0
    while match := _START.search(text, position):
        if match["end"] is None:
            tried += 1
            if tried > MAX_VALUES:
                found.too_many = True
                break
            value, position, broken = _read(text, match.start())
            if value is not None:
                found.values.append(value)
            found.broken |= broken
            continue
        position = match.end() if match["end"] else reasoning_end(text, match.end())
        if position < 0:
            found.unclosed = True
            break
        # What was said up to here was thought, not answered.
        found = JsonValues()
    return found


def _read(text: str, start: int) -> tuple[JsonValue | None, int, bool]:
    """(value, where to go on, whether it had said something before it went wrong) of what begins here.

    `above` are the lists and objects that are open around `inner`, `keys` their keys, and `key` that of
    `inner` whose value comes next.
    """
    above: list[Any] = []
    keys: list[str | None] = []
    inner: Any = [] if text[start] == "[" else {}
    key: str | None = None
    said = no_comma = is_cut = False
    position = start
    for match in _TOKEN.finditer(text, start + 1):
        kind = match.lastgroup or "other"
        position = match.start()
        is_list = type(inner) is list
        if kind == "other":
            is_cut = _is_cut(text, match.start("other"))
            break
        if kind == "close":
            if key is not None or is_list != (match["close"] == "]"):
                break
            if not above:
                return JsonValue(inner), match.end("close"), False
            value, inner, key = inner, above.pop(), keys.pop()
            no_comma = text[match.end() - 1] != ","
        elif no_comma:
            break
        elif kind in ("double", "single") and text[match.end() - 1] == ":":
            if is_list or key is not None:
                break
            key, said = _string(match[kind]), True
            continue
        elif not is_list and key is None:
            # A key without its colon: the text may end there.
            is_cut = kind in ("double", "single") and match.end() == len(text)
            break
        elif kind == "empty":
            # Nothing is in it, so that it need not be opened: replies of empty lists are read twice as fast.
            value = [] if match["empty"][0] == "[" else {}
        elif kind == "open":
            if len(above) + 1 == MAX_DEPTH:
                break
            above.append(inner)
            keys.append(key)
            inner, key = [] if match["open"] == "[" else {}, None
            continue
        else:
            value = _scalar(kind, match[kind])
            said = True
        if key is None:
            inner.append(value)
        else:
            inner[key], key = value, None
    if is_cut:
        return JsonValue(_cut(above, keys, inner), cut=True), len(text), False
    return None, position, said


def _is_cut(text: str, position: int) -> bool:
    """Whether the text ends at `position`, or within the string or word that begins there."""
    rest = text[position : position + 1]
    if rest in ("'", '"'):
        # A quotation mark that another one follows belongs to prose; so does one before the end of reasoning.
        return not _QUOTES[rest].search(text, position + 1) and reasoning_end(text, position) < 0
    return not rest or _CUT_WORD.match(text, position) is not None


def _cut(above: list[Any], keys: list[str | None], inner: Any) -> Any:
    """What stands in the open values: a list keeps its whole entries, an object the way down to them."""
    for outer, key in zip(reversed(above), reversed(keys), strict=True):
        if key is not None:
            outer[key] = inner
        inner = outer
    return inner


def _string(raw: str) -> str:
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(_unescaped, raw)
    if "\\u" not in raw:
        return text
    # Two escapes may be one character beyond the basic plane. Half of one stays, for the caller to refuse.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _ESCAPES.get(escaped, match[0])


def _scalar(kind: str, raw: str) -> Any:
    """Python's value of a token. A number that an int or a float would spell otherwise stays text."""
    if kind == "word":
        return _WORDS.get(raw)
    if kind != "number":
        return _string(raw)
    number = math.nan
    if len(raw) < 20:
        number = int(raw) if raw.isdecimal() or raw[1:].isdecimal() else float(raw)
    return number if str(number) == raw else raw
