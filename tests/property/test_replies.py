"""No reply, however broken, raises out of the parser."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hipporag_torch.extractors.triples import ENTITIES, TRIPLES
from hipporag_torch.replies import parse_json_reply, without_reasoning

FINISH = st.sampled_from(["stop", "length"])
SIGNS = st.sampled_from(list("[]{},:\"'\\ \na-1\ud800"))
WORDS = [
    "\\u",
    "1e9",
    "null",
    "</think>",
    "<think>",
    '"triples"',
    '"entities":',
    '["a", "b", "c"]',
    '{"subject": "a"}',
    "```",
]
PIECES = SIGNS | st.sampled_from(WORDS)
BROKEN = st.one_of(st.text(), st.lists(PIECES).map("".join))
PART = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
LISTS = st.lists(st.lists(PART, min_size=3, max_size=3), min_size=1, max_size=5)

OBJECTS = st.lists(
    st.fixed_dictionaries(
        {"subject": PART, "predicate": PART | st.none(), "object": PART | st.integers(0, 10**15)}
    ),
    min_size=1,
    max_size=5,
)


@given(text=BROKEN, finish=FINISH)
@example(text='["\\', finish="stop")
@example(text="[" * 100_000 + "]" * 100_000, finish="stop")
@example(text='{"a":' * 100_000, finish="length")
@example(text="[" + "9" * 100_000 + "]", finish="stop")
def test_no_reply_raises(text: str, finish: Any) -> None:
    without_reasoning(text)
    for wanted in (ENTITIES, TRIPLES):
        reply = parse_json_reply(text, finish, wanted)
        assert not (reply.fault and reply.items)


@given(value=LISTS, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]), before=BROKEN, finish=FINISH)
def test_json_behind_reasoning_is_read_as_json_does(
    value: list[list[str]], ascii_only: bool, indent: int | None, before: str, finish: Any
) -> None:
    text = json.dumps({"triples": value}, ensure_ascii=ascii_only, indent=indent)
    reply = parse_json_reply(f"{before.replace('<', '')}</think>{text}", finish, TRIPLES)
    assert (list(reply.items), reply.fault, reply.truncated) == (value, "", finish == "length")


@settings(max_examples=50)
@given(value=LISTS | OBJECTS, data=st.data())
def test_cut_anywhere_it_keeps_the_whole_entries(value: list[Any], data: st.DataObject) -> None:
    text = json.dumps({"triples": value}, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(text) - 1))
    reply = parse_json_reply(text[:cut], "length", TRIPLES)
    ends = [len(json.dumps({"triples": value[: n + 1]}, ensure_ascii=False)) - 2 for n in range(len(value))]
    whole = sum(end <= cut for end in ends)
    assert list(reply.items) == value[:whole]
    assert reply.truncated
    assert bool(reply.fault) == (whole == 0)
