"""What every chat model must do, whichever it is, wrapped or not."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.llms.budget import Budget, BudgetedChatModel
from hipporag_torch.llms.cache import ReplyCache
from hipporag_torch.llms.cached import CachedChatModel
from hipporag_torch.llms.metered import MeteredChatModel
from hipporag_torch.llms.openai import OpenAIChatModel
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.llms.transformers import TransformersChatModel
from hipporag_torch.llms.vllm import VLLMChatModel
from hipporag_torch.protocols import ChatModel

from ..llm_stub import Request, Response, StubServer, chunk, completion, events, failure
from ..tiny_chat_model import save_tiny_chat_model
from ..vllm_fake import FakeVLLM

Make = Callable[[], ChatModel]

TEXTS = ["Oslo?", "東京はどこですか", "C++ \U0001f99b", "São Tomé " * 50, "line\nbreak", 'quote " and \\']
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def prompt(text: str) -> Prompt:
    return (Message("system", "Answer."), Message("user", text))


def answer(asked: Prompt) -> str | ChatReply:
    """Echoes the last message, unless that asks for a failure."""
    text = asked[-1].text
    if text == "fail":
        return ChatReply("", "error", error="it failed")
    if text == "too long":
        return ChatReply("", "error", error="context too small", permanent=True)
    if text == "refuse":
        return ChatReply("", "refused", error="refused", permanent=True)
    return f"reply to {text}"


def respond(request: Request) -> Response:
    """The same over HTTP."""
    reply = answer((Message("user", request.last),))
    if isinstance(reply, str):
        limit = request.body["max_tokens"]
        words = reply.split()
        finish = "length" if len(words) > limit else "stop"
        text = " ".join(words[:limit]) if finish == "length" else reply
        if request.body.get("stream"):
            pieces = [chunk(piece) for piece in (text[:3], text[3:])]
            return events(*pieces, chunk(finish=finish), "[DONE]")
        return Response(completion(text, finish))
    if reply.finish == "refused":
        return failure(400, "refused", code="content_filter")
    return (
        failure(400, "context length", code="context_length_exceeded")
        if reply.permanent
        else failure(500, "x")
    )


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    with StubServer(respond) as stub:
        yield stub


@pytest.fixture(
    params=[
        "scripted",
        "openai",
        "cached scripted",
        "cached openai",
        "budgeted",
        "metered",
        "all around openai",
    ]
)
def make(request: pytest.FixtureRequest, server: StubServer, tmp_path: Path) -> Make:
    kind: str = request.param

    def plain() -> ChatModel:
        if kind.endswith("openai"):
            return OpenAIChatModel(model="m", base_url=server.url, api_key_env=None, max_retries=0)
        return ScriptedChatModel(replies=answer)

    def wrapped() -> ChatModel:
        model = plain()
        if kind in ("budgeted", "all around openai"):
            model = BudgetedChatModel(model=model, budget=Budget(calls=1_000), max_tokens=2048)
        if kind.startswith(("cached", "all")):
            model = CachedChatModel(model=model, cache=ReplyCache(tmp_path / "replies.sqlite"))
        return MeteredChatModel(model=model) if kind in ("metered", "all around openai") else model

    return wrapped


def test_a_reply_per_prompt_in_order(make: Make):
    replies = make().reply([prompt(text) for text in TEXTS])
    assert [reply.text for reply in replies] == [f"reply to {text}" for text in TEXTS]
    assert {reply.finish for reply in replies} == {"stop"}
    assert not any(reply.error or reply.permanent for reply in replies)


def test_no_prompts_no_replies(make: Make):
    assert make().reply([]) == []


def test_one_bad_prompt_never_sinks_a_batch(make: Make):
    asked = [prompt(text) for text in ("a", "fail", "too long", "refuse", "b")]
    replies = make().reply(asked)
    assert [reply.finish for reply in replies] == ["stop", "error", "error", "refused", "stop"]
    assert [reply.permanent for reply in replies] == [False, False, True, True, False]
    assert [bool(reply.error) for reply in replies] == [False, True, True, True, False]
    assert [reply.text for reply in replies] == ["reply to a", "", "", "", "reply to b"]
    assert all(reply.usage.calls == 0 for reply in replies[1:3]), "nothing was had, nothing is counted"


def test_accept_gets_each_reply_once_and_progress_ends_at_the_total(make: Make):
    got: dict[int, ChatReply] = {}
    steps: list[tuple[str, int, int]] = []

    def accept(number: int, reply: ChatReply) -> bool:
        assert number not in got
        got[number] = reply
        return reply.finish != "error"

    asked = [prompt(text) for text in [*TEXTS, "fail", TEXTS[0]]]
    replies = make().reply(asked, accept=accept, progress=lambda *step: steps.append(step))
    assert [got[number] for number in range(len(asked))] == replies
    assert steps[-1] == ("chat", len(asked), len(asked))
    assert [done for _, done, _ in steps] == sorted({done for _, done, _ in steps})


def test_usage_counts_calls_and_tokens(make: Make):
    (reply,) = make().reply([prompt("a")])
    usage = reply.usage
    assert usage.calls == 1
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens == 3
    assert usage.cached_calls == 0


def test_a_schema_may_be_asked_for(make: Make):
    (reply,) = make().reply([prompt("a")], schema=SCHEMA)
    assert reply.text == "reply to a"


def test_a_limit_cuts_a_reply(make: Make):
    (reply,) = make().reply([prompt("a")], max_tokens=2)
    assert (reply.text, reply.finish) == ("reply to", "length")


def test_a_stream_shows_what_the_reply_holds(make: Make):
    pieces: list[str] = []
    reply = make().stream(prompt("東京"), pieces.append)
    assert "".join(pieces) == reply.text == "reply to 東京"
    assert (reply.finish, reply.usage.calls) == ("stop", 1)


def test_tokens_of_a_prompt_grow_with_it(make: Make):
    model = make()
    short, long = (model.count_tokens(prompt("word " * count)) for count in (10, 100))
    assert 0 < short < long


def test_two_instances_have_the_same_identity_which_json_can_hold(make: Make):
    one, other = make().identity, make().identity
    assert one == other
    assert one.model
    assert json.loads(json.dumps([one.endpoint, one.model, one.revision, one.settings]))
    assert list(one.settings) == sorted(one.settings)


def test_the_context_is_known_or_not(make: Make):
    assert make().context_tokens is None
    assert make().reply([prompt("a")])[0].usage != Usage()


def test_no_key_in_a_cache_file(server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CONTRACT_KEY", "sk-contract-0123456789")
    model = OpenAIChatModel(
        model="m", base_url=server.url, api_key_env="CONTRACT_KEY", headers={"X-Secret": "a-secret-header"}
    )
    cache = ReplyCache(tmp_path / "replies.sqlite")
    CachedChatModel(model=model, cache=cache).reply([prompt("a")])
    assert server.requests[-1].headers["authorization"] == "Bearer sk-contract-0123456789"
    content = cache.path.read_bytes()
    assert b"reply to a" in content
    assert b"sk-contract" not in content
    assert b"a-secret" not in content


CONTEXT = 512
TOO_LONG = "x" * 20_000 + " word" * 9_000


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat_model(tmp_path_factory.mktemp("contract") / "tiny", context=CONTEXT)


@pytest.fixture(params=["transformers", "vllm"])
def local(
    request: pytest.FixtureRequest, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Make:
    """Models in this process, which say what they like: the laws that need no certain reply."""
    kind: str = request.param
    link = tmp_path / "tiny"
    link.symlink_to(tiny)
    if kind == "vllm":
        FakeVLLM().install(monkeypatch)
        return lambda: VLLMChatModel(model=str(link), max_model_len=CONTEXT, max_tokens=12, batch_size=4)
    return lambda: TransformersChatModel(model=str(link), device="cpu", max_tokens=12, batch_size=4)


def test_a_local_reply_does_not_hang_on_what_else_is_asked(local: Make):
    model = local()
    asked = [prompt(text) for text in (*TEXTS[:3], TEXTS[4], "a", "a")]
    assert model.reply(asked) == [model.reply([one])[0] for one in asked]
    assert model.reply(asked[::-1]) == model.reply(asked)[::-1]
    assert model.reply([]) == []


def test_a_local_model_refuses_one_prompt_and_answers_the_others(local: Make):
    model = local()
    got: dict[int, ChatReply] = {}
    steps: list[tuple[str, int, int]] = []

    def accept(number: int, reply: ChatReply) -> bool:
        assert number not in got
        got[number] = reply
        return True

    asked = [prompt(text) for text in ("a", TOO_LONG, "half \ud800", "b")]
    replies = model.reply(asked, accept=accept, progress=lambda *step: steps.append(step))
    assert [got[number] for number in range(4)] == replies
    assert [reply.finish == "error" for reply in replies] == [False, True, True, False]
    assert all(reply.permanent and reply.usage == Usage() for reply in replies[1:3])
    context = model.context_tokens
    assert context is not None
    assert f"{context:,}" in replies[1].error
    assert f"{model.count_tokens(asked[1]):,}" in replies[1].error
    assert [done for _, done, _ in steps] == [1, 2, 3, 4]
    assert {(stage, total) for stage, _, total in steps} == {("chat", 4)}


def test_a_limit_cuts_a_local_reply(local: Make):
    (reply,) = local().reply([prompt("Tell me a long story.")], max_tokens=2)
    assert (reply.finish, reply.usage.completion_tokens) == ("length", 2)
    assert reply.usage.calls == 1
    assert reply.usage.prompt_tokens > 0


def test_a_local_stream_shows_what_the_reply_holds(local: Make):
    pieces: list[str] = []
    model = local()
    reply = model.stream(prompt("東京"), pieces.append)
    assert "".join(pieces) == reply.text
    assert reply == model.reply([prompt("東京")])[0]
    assert model.stream(prompt(TOO_LONG), pieces.append).permanent


def test_a_schema_may_be_asked_of_a_local_model(local: Make):
    (reply,) = local().reply([prompt("a")], schema=SCHEMA)
    assert reply.usage.calls == 1


def test_local_identities_are_equal_and_json_can_hold_them(local: Make, tmp_path: Path):
    one, other = local().identity, local().identity
    assert one == other
    assert one.revision.startswith("sha256:")
    assert str(tmp_path) not in repr(one)
    assert json.loads(json.dumps([one.endpoint, one.model, one.revision, one.settings]))
    assert list(one.settings) == sorted(one.settings)
    assert dict(one.settings)["max_tokens"] == "12"
