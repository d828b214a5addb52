"""A chat model behind a cache: what is asked, what is kept, what is counted."""

from pathlib import Path

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError
from hipporag_torch.llms.cache import ReplyCache
from hipporag_torch.llms.cached import CachedChatModel
from hipporag_torch.llms.scripted import ScriptedChatModel


def user(text: str) -> Prompt:
    return (Message("user", text),)


def echo(prompt: Prompt) -> str:
    return f"<{prompt[-1].text}>"


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(tmp_path / "replies.sqlite")


def test_a_prompt_is_asked_once_in_a_batch_and_once_for_ever(cache: ReplyCache):
    inner = ScriptedChatModel(replies=echo)
    chat = CachedChatModel(model=inner, cache=cache)
    accepted: list[tuple[int, str]] = []
    steps: list[tuple[str, int, int]] = []
    first = chat.reply(
        [user("a"), user("b"), user("a")],
        accept=lambda number, reply: accepted.append((number, reply.text)) is None,
        progress=lambda *step: steps.append(step),
    )
    assert [reply.text for reply in first] == ["<a>", "<b>", "<a>"]
    assert sum((reply.usage for reply in first), Usage()) == Usage(2, 2, 2, 1, 1, 1)
    assert sorted(accepted) == [(0, "<a>"), (1, "<b>"), (2, "<a>")]
    assert steps[-1] == ("chat", 3, 3)
    second = CachedChatModel(model=inner, cache=cache).reply([user("b"), user("c"), user("b")])
    assert [reply.text for reply in second] == ["<b>", "<c>", "<b>"]
    assert sum((reply.usage for reply in second), Usage()) == Usage(1, 1, 1, 2, 2, 2)
    assert [prompt[0].text for prompt in inner.asked] == ["a", "b", "c"]


def test_only_accepted_replies_are_kept(cache: ReplyCache):
    replies = iter(["broken", "good"])
    inner = ScriptedChatModel(replies=lambda _: next(replies))
    chat = CachedChatModel(model=inner, cache=cache)
    texts = [chat.reply([user("a")], accept=lambda _, reply: reply.text == "good")[0].text for _ in range(3)]
    assert texts == ["broken", "good", "good"]
    assert inner.calls == 2


def test_errors_are_not_kept_whatever_accept_says(cache: ReplyCache):
    replies = iter([ChatReply("", "error", error="500"), "good"])
    chat = CachedChatModel(model=ScriptedChatModel(replies=lambda _: next(replies)), cache=cache)
    assert chat.reply([user("a")], accept=lambda *_: True)[0].error == "500"
    assert chat.reply([user("a")])[0].text == "good"


def test_a_cached_reply_that_is_not_accepted_is_asked_for_again(cache: ReplyCache):
    """As when a parser became stricter: this call fails, the next one goes past the cache."""
    inner = ScriptedChatModel(replies=echo)
    chat = CachedChatModel(model=inner, cache=cache)
    chat.reply([user("a")])
    chat.reply([user("a")], accept=lambda *_: False)
    assert inner.calls == 1
    chat.reply([user("a")])
    assert inner.calls == 2


def test_what_a_broken_batch_paid_for_is_kept(cache: ReplyCache):
    def answer(prompt: Prompt) -> str:
        if prompt[0].text == "c":
            raise BackendError("down")
        return "paid"

    chat = CachedChatModel(model=ScriptedChatModel(replies=answer), cache=cache)
    with pytest.raises(BackendError, match="down"):
        chat.reply([user("a"), user("b"), user("c"), user("d")])
    replies = chat.reply([user("a"), user("b")])
    assert [reply.usage.cached_calls for reply in replies] == [1, 1]


def test_cached_replies_are_accepted_before_anything_is_asked(cache: ReplyCache):
    def answer(prompt: Prompt) -> str:
        if prompt[0].text == "down":
            raise BackendError("down")
        return "x"

    chat = CachedChatModel(model=ScriptedChatModel(replies=answer), cache=cache)
    chat.reply([user("a")])
    accepted: list[int] = []
    with pytest.raises(BackendError, match="down"):
        chat.reply([user("down"), user("a")], accept=lambda number, _: accepted.append(number) is None)
    assert accepted == [1]


def test_limits_and_schemas_are_part_of_the_key(cache: ReplyCache):
    inner = ScriptedChatModel(replies=lambda _: "one two three")
    chat = CachedChatModel(model=inner, cache=cache)
    assert chat.reply([user("a")], max_tokens=2)[0].text == "one two"
    assert chat.reply([user("a")])[0].text == "one two three"
    chat.reply([user("a")], schema={"type": "object"})
    assert inner.calls == 3


def test_a_stream_takes_from_the_cache_and_adds_nothing(cache: ReplyCache):
    inner = ScriptedChatModel(replies=lambda _: "one two")
    chat = CachedChatModel(model=inner, cache=cache)
    pieces: list[str] = []
    chat.stream(user("a"), pieces.append)
    chat.reply([user("a")])
    reply = chat.stream(user("a"), pieces.append)
    assert pieces == ["one", " two", "one two"]
    assert reply.usage == Usage(0, 0, 0, 1, 1, 2)
    assert (inner.calls, chat.hits, chat.misses) == (2, 1, 2)
