"""What a model was asked for, found in what it sent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hipporag_torch.chat import Finish
from hipporag_torch.replies.loose_json import MAX_VALUES, JsonValues, json_values

_MARKS = {ord(mark): None for mark in " _-"}


@dataclass(frozen=True)
class Wanted:
    """A list that a reply is to hold.

    key: the key that was asked for. also: other spellings that models use. Case, blanks, hyphens and
    underscores make no difference. is_item: whether a value is an entry of such a list; it decides which
    lists are taken that stand in the reply without the key.
    """

    key: str
    also: tuple[str, ...]
    is_item: Callable[[Any], bool]

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(map(_plain, (self.key, *self.also)))

    def names(self, key: str) -> bool:
        """Whether `key` is the wanted one, in one of its spellings."""
        return _plain(key) in self._spellings


@dataclass(frozen=True)
class JsonReply:
    """The list that a reply holds, its entries as they are, or why there is none.

    `fault` is empty if there is one. `truncated` says that the reply was cut, so that entries may be missing.
    """

    items: tuple[Any, ...] = ()
    fault: str = ""
    truncated: bool = False


def parse_json_reply(text: str, finish: Finish, wanted: Wanted) -> JsonReply:
    """The wanted list of a reply, whatever stands around it. Never raises; linear in the length of the text.

    Reasoning goes first. Then the last object counts that has the key, however deep; without one, the last
    list of entries; without one, the entries that stand alone. A reply that went wrong as JSON counts by its
    key only. What the end of the text has cut gives its whole entries.
    """
    found = json_values(text)
    if found.too_many:
        return JsonReply(fault=f"the reply is noise: it has more than {MAX_VALUES} pieces of JSON")
    cut = finish == "length"
    for value in reversed(found.values):
        holder = _holder(value.value, wanted)
        if holder is not None:
            items = _items(holder[0], wanted)
            if items is None:
                kind = type(holder[0]).__name__
                return JsonReply(fault=f"the reply's {wanted.key!r} is no list but {kind}", truncated=cut)
            return _reply(items, value.cut, cut, wanted)
    for value in () if found.broken else reversed(found.values):
        if isinstance(value.value, list) and any(map(wanted.is_item, value.value)):
            return _reply(value.value, value.cut, cut, wanted)
    alone = [value for value in found.values if not value.cut and wanted.is_item(value.value)]
    if alone and not found.broken:
        return _reply([value.value for value in alone], found.values[-1].cut, cut, wanted)
    if found.values and found.values[-1].value == [] and not found.broken:
        return _reply([], found.values[-1].cut, cut, wanted)
    return JsonReply(fault=_fault(text, found, cut, wanted), truncated=cut)


def _reply(items: list[Any], value_cut: bool, reply_cut: bool, wanted: Wanted) -> JsonReply:
    if value_cut and not items:
        return JsonReply(fault=f"the reply was cut before the first of its {wanted.key}", truncated=True)
    return JsonReply(tuple(items), truncated=value_cut or reply_cut)


def _fault(text: str, found: JsonValues, cut: bool, wanted: Wanted) -> str:
    if not text.strip():
        return "the reply is empty"
    if found.unclosed:
        return "the reply was cut while the model was reasoning" if cut else "the reply is all reasoning"
    if found.broken:
        return f"the reply is not valid JSON, and has no {wanted.key!r} that is"
    return f"the reply has no JSON with {wanted.key!r}" + (" before it was cut" if cut else "")


def _holder(value: Any, wanted: Wanted) -> tuple[Any] | None:
    """What the wanted key holds, in a tuple; of several keys the outermost, then the first."""
    level = [value]
    while level:
        objects = [one for one in level if isinstance(one, dict)]
        for one in objects:
            for key, inner in one.items():
                if wanted.names(key):
                    return (inner,)
        level = [inner for one in level for inner in _inner(one)]
    return None


def _inner(value: Any) -> Iterator[Any]:
    """Where the key is looked for next. In a list it is nobody's, unless the list only wraps one object."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list) and len(value) == 1:
        yield value[0]


def _items(value: Any, wanted: Wanted) -> list[Any] | None:
    """The entries that stand under the key; None if these are none."""
    if isinstance(value, list):
        lone = not any(map(wanted.is_item, value)) and wanted.is_item(value)
        return [value] if lone else value
    if not isinstance(value, str) and wanted.is_item(value):
        return [value]
    if isinstance(value, dict) and value and all(isinstance(group, list) for group in value.values()):
        return [item for group in value.values() for item in group]
    return None


def _plain(key: str) -> str:
    return key.casefold().translate(_MARKS)
