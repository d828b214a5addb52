"""The file that replies are kept in."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chat import ChatIdentity, ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError, CompatibilityError
from hipporag_torch.llms.cache import ReplyCache, _Quoted, reply_key

IDENTITY = ChatIdentity("http://localhost/v1", "m", "r1", (("temperature", "0.0"),))
OSLO = "Oslo is the capital of Norway.\nIt lies at a fjord."
ROME = "Rome was not built in a day; nor was Milan."


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(tmp_path / "new" / "replies.sqlite", wait_seconds=0.1)


def prompt(*texts: str) -> Prompt:
    return (Message("system", "List the triples."), *(Message("user", text) for text in texts))


def put(cache: ReplyCache, asked: Prompt, text: str) -> bytes:
    key = reply_key(IDENTITY, asked, None, None)
    cache.put([(key, asked, ChatReply(text, "stop", Usage(1, 10, 2)))])
    return key


def test_what_was_put_comes_back_as_cached(cache: ReplyCache):
    cut, whole = reply_key(IDENTITY, prompt("a"), None, None), reply_key(IDENTITY, prompt("b"), None, None)
    cache.put(
        [
            (cut, prompt("a"), ChatReply("東京 \U0001f99b", "length", Usage(1, 10, 2))),
            (whole, prompt("b"), ChatReply("", "refused", Usage(1, 11, 0))),
        ]
    )
    assert cache.get([whole, b"unknown", cut]) == {
        cut: ChatReply("東京 \U0001f99b", "length", Usage(0, 0, 0, 1, 10, 2)),
        whole: ChatReply("", "refused", Usage(0, 0, 0, 1, 11, 0)),
    }


def test_more_keys_than_a_query_takes(cache: ReplyCache):
    asked = [prompt(str(number)) for number in range(2_000)]
    keys = [reply_key(IDENTITY, one, None, None) for one in asked]
    cache.put([(key, one, ChatReply(one[-1].text)) for key, one in zip(keys, asked, strict=True)])
    known = cache.get(keys)
    assert [known[key].text for key in keys] == [str(number) for number in range(2_000)]


def test_the_first_reply_stays_until_it_is_forgotten(cache: ReplyCache):
    key = put(cache, prompt("a"), "first")
    put(cache, prompt("a"), "second")
    assert cache.get([key])[key].text == "first"
    cache.forget([key])
    assert cache.get([key]) == {}
    put(cache, prompt("a"), "third")
    assert cache.get([key])[key].text == "third"


def test_all_that_decides_a_reply_decides_its_key():
    asked = prompt("a", "b")
    keys = {
        reply_key(identity, *rest)
        for identity, *rest in (
            (IDENTITY, asked, None, None),
            (replace(IDENTITY, endpoint="http://other/v1"), asked, None, None),
            (replace(IDENTITY, model="n"), asked, None, None),
            (replace(IDENTITY, revision="r2"), asked, None, None),
            (replace(IDENTITY, settings=(("temperature", "1.0"),)), asked, None, None),
            (IDENTITY, prompt("a b"), None, None),
            (IDENTITY, prompt("b", "a"), None, None),
            (IDENTITY, (*asked[:-1], Message("assistant", "b")), None, None),
            (IDENTITY, asked, 100, None),
            (IDENTITY, asked, None, {"type": "object"}),
            (IDENTITY, asked, None, {"type": "array"}),
            (IDENTITY, prompt("a", "b\ud800"), None, None),
        )
    }
    assert len(keys) == 12
    assert reply_key(IDENTITY, prompt("a", "b"), None, None) in keys


def test_dropping_a_text_drops_every_reply_to_a_prompt_that_quotes_it(cache: ReplyCache):
    keys = {
        "alone": put(cache, prompt(OSLO), "r1"),
        "inside": put(cache, prompt(f"Passage:\n{OSLO}\nEntities: [Oslo]"), "r2"),
        "reflowed": put(cache, prompt("PASSAGE: " + OSLO.upper().replace(" ", "\n ")), "r3"),
        "beside": put(cache, prompt(ROME, OSLO), "r4"),
        "other": put(cache, prompt(ROME), "r5"),
        "part": put(cache, prompt(OSLO[:-3]), "r6"),
    }
    assert cache.drop(["", "  ", OSLO]) == 4
    left = cache.get(list(keys.values()))
    assert [name for name, key in keys.items() if key in left] == ["other", "part"]
    assert cache.drop([OSLO]) == 0


def test_dropping_from_a_cache_that_was_never_used_makes_no_file(cache: ReplyCache):
    assert cache.drop([OSLO]) == 0
    assert not cache.path.exists()


def test_no_byte_of_what_was_dropped_is_left_in_the_file(cache: ReplyCache):
    """Rows of all sizes and in any order, so that SQLite splits and rebalances pages meanwhile."""
    passages, entries = [], []
    for number in range(300):
        animal = f"{'horse' if number % 3 else 'zebra'}{number}"
        passages.append(f"The {animal} crossed the river " + "again and " * (number * 7 % 400) + "again.")
        asked = prompt(f"Passage: {passages[-1]}")
        reply = ChatReply(f"reply about the {animal}" + " indeed" * (number % 90))
        entries.append((reply_key(IDENTITY, asked, None, None), asked, reply))
    for start in range(0, 300, 15):
        cache.put(entries[start : start + 15])
    removed = passages[::3]
    assert b"zebra" in cache.path.read_bytes()
    assert cache.drop(removed) == 100
    content = cache.path.read_bytes()
    assert b"zebra" not in content
    assert content.count(b"about the horse") == 200
    assert [path.name for path in cache.path.parent.iterdir()] == ["replies.sqlite"]


def test_messages_that_nothing_uses_any_more_go_too(cache: ReplyCache):
    put(cache, prompt(OSLO, "a thought of the model"), "r")
    cache.drop([OSLO])
    with closing(sqlite3.connect(cache.path)) as file:
        assert file.execute("SELECT count(*) FROM messages").fetchone() == (0,)
        assert file.execute("SELECT count(*) FROM uses").fetchone() == (0,)


WORDS = st.lists(st.sampled_from(["a", "Oslo", "fjord", "é", "東京", "-", "x1", "_", "C++"]), max_size=6)


@given(WORDS, WORDS, WORDS, st.sampled_from(["", " ", "\n", '"']))
def test_a_text_is_found_wherever_it_stands(before: list[str], text: list[str], behind: list[str], glue: str):
    quoted = " ".join(text)
    message = glue.join([" ".join(before), quoted, " ".join(behind)])
    folded = " ".join(message.casefold().split())
    assert _Quoted([quoted, "never there"]).in_(folded) == bool(quoted.strip())


def test_a_file_of_something_else_stays_as_it_is(cache: ReplyCache):
    cache.path.parent.mkdir()
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("CREATE TABLE letters (text)")
    before = cache.path.read_bytes()
    with pytest.raises(CompatibilityError, match="not a reply cache of this version"):
        put(cache, prompt("a"), "r")
    assert cache.path.read_bytes() == before


def test_a_file_that_stays_locked_is_an_error(cache: ReplyCache):
    put(cache, prompt("a"), "r")
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BackendError, match=r"the reply cache .* database is locked"):
            put(cache, prompt("b"), "r")
