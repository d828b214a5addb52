"""The OpenAI-compatible chat model against a server that does what a real one won't do on demand."""

import asyncio
import json
import logging
import os
import re
import signal
import threading
import time
import traceback
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.openai import OpenAIChatModel
from hipporag_torch.llms.presets import azure_chat_model, bedrock_chat_model

from ...llm_stub import Request, Response, StubServer, chunk, completion, echo, events, failure

KEY = "sk-test-0123456789abcdef"
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as stub:
        yield stub


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STUB_KEY", KEY)


def model(server: StubServer, **options: Any) -> OpenAIChatModel:
    defaults: dict[str, Any] = {"api_key_env": "STUB_KEY", "timeout_seconds": 20.0, "max_retries": 0}
    return OpenAIChatModel(model="m", base_url=server.url, **{**defaults, **options})


def ask(*texts: str) -> list[Prompt]:
    return [(Message("system", "Answer."), Message("user", text)) for text in texts]


def one(chat: OpenAIChatModel, text: str = "hello") -> ChatReply:
    (reply,) = chat.reply(ask(text))
    return reply


def after(failures: int, wrong: Response) -> Any:
    """Answers wrongly so many times, then well."""
    return lambda request: wrong if request.number < failures else echo(request)


def test_a_reply_and_what_was_sent_for_it(server: StubServer):
    chat = model(server, seed=3, max_tokens=50, extra_body={"top_k": 1}, headers={"X-Team": "red"})
    (reply,) = chat.reply(ask("São Tomé, 東京, 🦛"), schema=SCHEMA)
    assert reply == ChatReply("São Tomé, 東京, 🦛", "stop", Usage(1, 7, 4))
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "red"
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "São Tomé, 東京, 🦛"},
        ],
        "temperature": 0.0,
        "seed": 3,
        "max_tokens": 50,
        "top_k": 1,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
        },
    }


def test_settings_that_are_null_are_left_to_the_endpoint(server: StubServer):
    chat = model(server, temperature=None, max_tokens_name="max_completion_tokens", structured="json_object")
    chat.reply(ask("a"), schema=SCHEMA, max_tokens=9)
    chat.reply(ask("a"))
    with_schema, without = (request.body for request in server.requests)
    assert set(with_schema) == {"model", "messages", "max_completion_tokens", "response_format"}
    assert with_schema["response_format"] == {"type": "json_object"}
    assert with_schema["max_completion_tokens"] == 9
    assert "response_format" not in without


def test_retry_after_is_honoured_and_the_retries_are_counted(server: StubServer):
    limited = Response({"error": {"message": "slow down"}}, 429, headers={"Retry-After": "1"})
    server.behave = after(2, limited)
    chat = model(server, max_retries=3)
    assert one(chat) == ChatReply("hello", "stop", Usage(1, 7, 1)), "charged once"
    first, second, third = (request.at for request in server.requests)
    assert 1.0 <= second - first < 2.5
    assert 1.0 <= third - second < 2.5
    assert chat.retries == 2


@pytest.mark.parametrize(
    "wrong",
    [
        failure(500, "oops"),
        failure(503, "loading the model"),
        Response(completion("hello"), midway=True),
    ],
)
def test_what_passes_is_tried_again(server: StubServer, wrong: Response):
    server.behave = after(1, wrong)
    assert one(model(server, max_retries=1)).text == "hello"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (failure(500, "oops"), "answered 500, tried 1 times: oops"),
        (failure(429, "slow down"), "answered 429, tried 1 times: slow down"),
        (
            Response(completion("x"), delay=1.0),
            "no reply within 0.3 s, tried 1 times; raise llm.timeout_seconds",
        ),
        (Response(completion("x"), midway=True), "the connection to .* failed .*tried 1 times"),
        (Response("<html>Sorry</html>", content_type="text/html"), "answered text/html: <html>Sorry</html>"),
        (Response('{"choices": [', 200), 'answered application/json: {"choices"'),
        (Response("fine", content_type="text/plain"), "answered text/plain: fine"),
        (Response("[1, 2]"), "reply holds no choices|answered application/json"),
        (Response({**completion("x"), "choices": []}), "reply holds no choices"),
        (Response({**completion("x"), "choices": None}), "reply holds no choices"),
        (Response(completion(None)), "reply is empty"),
        (Response(completion("")), "reply is empty"),
    ],
)
def test_one_bad_answer_fails_one_prompt_and_may_heal(server: StubServer, wrong: Response, said: str):
    server.behave = lambda request: wrong if request.last == "bad" else echo(request)
    chat = model(server, concurrency=1, timeout_seconds=0.3)
    first, bad, last = chat.reply(ask("one", "bad", "two"))
    assert (first.text, last.text) == ("one", "two")
    assert (bad.text, bad.finish, bad.permanent) == ("", "error", False)
    assert re.search(said, bad.error), bad.error


@pytest.mark.parametrize(
    ("wrong", "finish", "said"),
    [
        (
            failure(400, "This model's maximum context length is 8192 tokens. You requested 9000", code="x"),
            "error",
            r"about [\d,]+ tokens\) and a reply of up to 2,048 .* maximum context length is 8192 .*split",
        ),
        (
            failure(400, "too large", type="exceed_context_size_error", n_prompt_tokens=700, n_ctx=512),
            "error",
            r"too large \(prompt 700 tokens, context 512\)",
        ),
        (failure(413, "Payload Too Large"), "error", "do not fit into the context of m"),
        (failure(400, "filtered", code="content_filter"), "refused", "content filter: filtered"),
        (failure(400, "no such role"), "error", r"refused the prompt \(400\): no such role"),
        (Response(completion(None, refusal="I won't.")), "refused", "refused: I won't."),
        (Response(completion(None, finish="content_filter")), "refused", "content filter"),
    ],
)
def test_what_asking_again_would_not_heal_is_permanent(
    server: StubServer, wrong: Response, finish: str, said: str
):
    server.behave = lambda request: wrong if request.last == "bad" else echo(request)
    bad, last = model(server, concurrency=1).reply(ask("bad", "two"))
    assert last.text == "two", "though the bad one came first"
    assert (bad.text, bad.finish, bad.permanent) == ("", finish, True)
    assert re.search(said, bad.error), bad.error


def test_a_reply_cut_by_the_limit_keeps_its_text(server: StubServer):
    server.behave = lambda _: Response(completion('{"triples": [["a",', "length"))
    assert one(model(server)) == ChatReply('{"triples": [["a",', "length", Usage(1, 7, 2))


def test_a_limit_used_up_by_thinking_gives_an_empty_cut_reply(server: StubServer):
    server.behave = lambda _: Response(completion(None, "length", reasoning_content="hm"))
    assert one(model(server)).finish == "length"


def test_malformed_json_in_a_reply_is_the_parsers_affair(server: StubServer):
    server.behave = after(1, Response(completion('{"triples": [[')))
    chat = model(server)
    assert one(chat).text == '{"triples": [['
    assert one(chat).text == "hello"


def test_half_a_surrogate_pair_fails_its_prompt_alone(server: StubServer):
    bad, good = model(server).reply(ask("\ud800", "b"))
    assert bad.permanent
    assert "surrogate" in bad.error
    assert good.text == "b"


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (
            failure(401, "Incorrect key"),
            ConfigError,
            r"refuses the key in STUB_KEY \(401\): Incorrect key; check",
        ),
        (failure(403, "no"), ConfigError, r"refuses the key in STUB_KEY \(403\)"),
        (
            failure(404, "The model `m` does not exist"),
            ConfigError,
            r"knows no model 'm', .*404.*set llm.model",
        ),
        (
            Response("<h1>Not Found</h1>", 404, "text/html"),
            ConfigError,
            r"nothing is at that address .*ends with /v1",
        ),
        (failure(402, "pay"), BackendError, r"no credit left \(402\): pay"),
        (failure(429, "quota", code="insufficient_quota"), BackendError, r"no credit left \(429\)"),
        (failure(400, "Invalid schema for response_format"), ConfigError, "set llm.structured=none"),
        (failure(400, "failed to parse grammar"), ConfigError, "set llm.structured=none"),
        (failure(400, "unsupported", param="temperature"), ConfigError, "takes no such temperature for m"),
        (
            Response("<html><title>Router</title></html>", content_type="text/html"),
            BackendError,
            "is no OpenAI-compatible API: it answered text/html: <html>.*llm.base_url",
        ),
    ],
)
def test_what_concerns_all_prompts_is_raised(
    server: StubServer, wrong: Response, error: type[Exception], said: str
):
    server.behave = lambda _: wrong
    with pytest.raises(error, match=said):
        model(server, concurrency=4).reply(ask(*"abcdefgh"), schema=SCHEMA)
    assert len(server.requests) <= 8


def test_replies_that_were_had_before_an_error_for_all_are_accepted(server: StubServer):
    server.behave = lambda request: echo(request) if request.number < 3 else failure(401, "expired")
    taken: list[int] = []
    with pytest.raises(ConfigError, match="401"):
        model(server, concurrency=1).reply(
            ask(*"abcdef"), accept=lambda number, reply: taken.append(number) is None
        )
    assert taken == [0, 1, 2]


def test_a_model_that_is_unknown_after_replies_were_had_fails_its_prompt_alone(server: StubServer):
    server.behave = lambda request: failure(404, "gone") if request.last == "b" else echo(request)
    replies = model(server, concurrency=1).reply(ask(*"abc"))
    assert [reply.finish for reply in replies] == ["stop", "error", "stop"]


def test_no_key(server: StubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("STUB_KEY")
    remote = OpenAIChatModel(model="m", base_url="https://llm.example/v1", api_key_env="STUB_KEY")
    with pytest.raises(ConfigError, match="environment variable STUB_KEY is not set; set it"):
        remote.reply(ask("a"))
    assert remote.reply([]) == []
    assert one(model(server)).text == "hello", "an endpoint on this machine needs none"
    assert one(model(server, api_key_env=None)).text == "hello"


def test_a_key_with_a_line_end_inside_is_refused_without_being_shown(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("STUB_KEY", "sk-first\nsk-second")
    with pytest.raises(ConfigError, match="does not hold a key") as raised:
        one(model(server))
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "https://me:pass@host/v1", "http://h/v1?k=1", ""]
)
def test_addresses_that_are_none(url: str):
    with pytest.raises(ConfigError, match=r"llm\.base_url must be an address") as raised:
        OpenAIChatModel(model="m", base_url=url)
    assert "pass" not in str(raised.value).replace("password", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": " "}, "llm.model"),
        ({"concurrency": 0}, "llm.concurrency must be a whole number, 1 to 1,000, got 0"),
        ({"max_tokens": 0}, "llm.max_tokens"),
        ({"max_retries": -1}, "llm.max_retries"),
        ({"timeout_seconds": 0}, "llm.timeout_seconds"),
        ({"structured": "yaml"}, "llm.structured must be one of json_schema, json_object, none, got 'yaml'"),
        ({"prompt_price": 1.0}, "belong together"),
        ({"api_version": "2024-10-21"}, "Azure endpoint, which needs llm.base_url"),
        ({"headers": {"X-A": "a\nb"}}, "llm.headers: 'X-A'"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        OpenAIChatModel(**{"model": "m", **options})


def test_an_endpoint_that_is_down_from_the_start(server: StubServer):
    server.stop()
    start = time.monotonic()
    with pytest.raises(BackendError, match=r"cannot be reached \(ConnectError.*start the service"):
        model(server).reply(ask(*map(str, range(500))))
    assert time.monotonic() - start < 5


def test_an_endpoint_that_never_answers_anything_useful(server: StubServer):
    server.behave = lambda _: failure(500, "broken")
    with pytest.raises(BackendError, match=r"answered none of the first 4 prompts, the last one: .*broken"):
        model(server, give_up_after=4, concurrency=2).reply(ask(*map(str, range(50))))
    assert len(server.requests) <= 6


def test_a_server_that_dies_fails_the_rest_fast(server: StubServer):
    died = threading.Event()

    def behave(request: Request) -> Response:
        if request.number == 20:
            died.set()
        return failure(500, "dying") if died.is_set() else echo(request)

    server.behave = behave
    replies = model(server, give_up_after=5, concurrency=4).reply(ask(*map(str, range(1000))))
    asked = [reply for reply in replies if not reply.error.startswith("not asked: ")]
    assert 20 + 5 <= len(server.requests) <= 20 + 5 + 4
    assert len(asked) == len(server.requests)
    assert sum(reply.finish == "stop" for reply in replies) == 20
    assert not any(reply.permanent for reply in replies)
    assert "prompts in a row failed, the last one:" in replies[-1].error
    died.clear()
    server.behave = echo
    assert one(model(server)).text == "hello", "the next batch starts afresh"


def test_failures_that_are_not_in_a_row_give_nothing_up(server: StubServer):
    server.behave = lambda request: failure(500, "x") if int(request.last) % 2 else echo(request)
    replies = model(server, give_up_after=2, concurrency=1).reply(ask(*map(str, range(40))))
    assert [reply.finish for reply in replies] == ["stop", "error"] * 20


def test_requests_in_flight_are_many_but_bounded_and_replies_in_order(server: StubServer):
    server.behave = lambda request: Response(completion(request.last), delay=0.02 * (request.number % 3))
    texts = [f"prompt {number}" for number in range(300)]
    threads, numbers, steps = set(), [], []

    def accept(number: int, reply: ChatReply) -> bool:
        threads.add(threading.get_ident())
        assert reply.text == texts[number]
        numbers.append(number)
        return True

    chat = model(server, concurrency=16, timeout_seconds=30)
    replies = chat.reply(ask(*texts), accept=accept, progress=lambda *step: steps.append(step))
    assert [reply.text for reply in replies] == texts
    assert threads == {threading.get_ident()}, "accept is called by whoever called"
    assert sorted(numbers) == list(range(300))
    assert numbers != sorted(numbers), "as they come"
    assert steps == [("chat", done, 300) for done in range(1, 301)]
    assert 8 <= server.most_in_flight <= 16


@pytest.mark.slow
def test_thousands_of_prompts(server: StubServer):
    texts = [str(number) for number in range(3_000)]
    replies = model(server, timeout_seconds=60).reply(ask(*texts))
    assert [reply.text for reply in replies] == texts


def test_an_error_of_accept_ends_the_batch(server: StubServer):
    def accept(number: int, reply: ChatReply) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model(server, concurrency=2).reply(ask(*map(str, range(200))), accept=accept)
    assert len(server.requests) < 50


def test_where_an_event_loop_runs_already(server: StubServer):
    async def cell() -> ChatReply:
        return one(model(server))

    assert asyncio.run(cell()).text == "hello"


def test_ctrl_c_ends_it_and_keeps_what_was_had(server: StubServer):
    def behave(request: Request) -> Response:
        if request.last == "slow":
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            return Response(completion("late"), delay=3.0)
        return echo(request)

    server.behave = behave
    taken: list[str] = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model(server, timeout_seconds=30).reply(
            ask("a", "slow", "b"), accept=lambda _, reply: taken.append(reply.text) is None
        )
    assert time.monotonic() - start < 2.5
    assert sorted(taken) == ["a", "b"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hipporag-chat")]


def test_usage_is_estimated_and_said_where_the_endpoint_counts_nothing(
    server: StubServer, caplog: pytest.LogCaptureFixture
):
    server.behave = lambda request: Response({**completion(request.last), "usage": None})
    chat = model(server)
    with caplog.at_level(logging.WARNING, "hipporag_torch"):
        replies = chat.reply(ask("four words stand here", "b"))
    assert replies[0].usage == Usage(1, chat.count_tokens(ask("four words stand here")[0]), 6)
    assert chat.estimated_replies == 2
    assert "counts no tokens" in caplog.text


def test_a_streamed_reply(server: StubServer):
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    server.behave = lambda _: events(
        chunk("São "),
        chunk("Tomé"),
        chunk(finish="stop"),
        {**chunk(), "choices": [], "usage": usage},
        "[DONE]",
    )
    pieces: list[str] = []
    reply = model(server).stream(ask("a")[0], pieces.append, max_tokens=4)
    assert pieces == ["São ", "Tomé"]
    assert reply == ChatReply("São Tomé", "stop", Usage(1, 5, 2))
    assert server.requests[0].body["stream"] is True
    assert server.requests[0].body["max_tokens"] == 4


def test_a_stream_that_breaks_off_is_an_error(server: StubServer):
    server.behave = lambda _: events(chunk("half"))
    pieces: list[str] = []
    reply = model(server).stream(ask("a")[0], pieces.append)
    assert pieces == ["half"]
    assert (reply.text, reply.finish) == ("", "error")
    assert "middle of the reply" in reply.error


def test_a_stream_with_an_error_in_it(server: StubServer):
    server.behave = lambda _: events(chunk("half"), {"error": {"message": "overloaded"}})
    reply = model(server).stream(ask("a")[0], lambda _: None)
    assert (reply.finish, reply.permanent) == ("error", False)
    assert "overloaded" in reply.error


def test_a_stream_of_an_endpoint_that_is_none(server: StubServer):
    server.behave = lambda _: Response("<html>", content_type="text/html")
    with pytest.raises(BackendError, match="no OpenAI-compatible API"):
        model(server).stream(ask("a")[0], lambda _: None)
    server.behave = lambda _: failure(401, "no")
    with pytest.raises(ConfigError, match="401"):
        model(server).stream(ask("a")[0], lambda _: None)


def test_azure(server: StubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "another credential, which is not to be used")
    chat = azure_chat_model(
        endpoint=server.url.removesuffix("/v1"), deployment="my-4o", api_version="2024-10-21", max_retries=0
    )
    assert one(chat).text == "hello"
    (request,) = server.requests
    assert request.path == "/openai/deployments/my-4o/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    server.behave = lambda _: failure(404, "The API deployment does not exist", code="DeploymentNotFound")
    with pytest.raises(ConfigError, match="deployment's name"):
        one(chat)


def test_bedrock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    chat = bedrock_chat_model(region="us-west-2", model="openai.gpt-oss-20b-1:0", max_tokens=100)
    assert chat.identity.endpoint == "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1"
    with pytest.raises(ConfigError, match="AWS_BEARER_TOKEN_BEDROCK is not set"):
        one(chat)
    with pytest.raises(ConfigError, match="a region of AWS"):
        bedrock_chat_model(region="evil.example/", model="m")


def test_variables_of_the_sdk_change_no_address(server: StubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert OpenAIChatModel(model="m").identity.endpoint == "https://api.openai.com/v1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
@pytest.mark.parametrize("shown", [KEY, KEY[:12] + "…", "secret-header-value"])
def test_no_key_appears_in_any_error(server: StubServer, status: int, shown: str):
    server.behave = lambda request: failure(status, f"you sent {shown} as the key", code="x")
    chat = model(server, headers={"X-Secret": "secret-header-value"})
    if status in (401, 403, 404):
        with pytest.raises(ConfigError) as raised:
            one(chat)
        said = "".join(traceback.format_exception(raised.value))
    else:
        said = repr(one(chat))
    assert "you sent ***" in said
    assert KEY[:8] not in said
    assert "secret-header" not in said


def test_no_key_is_kept_in_the_object(server: StubServer):
    chat = model(server, headers={"X-Secret": "secret-header-value"})
    one(chat)
    assert KEY not in json.dumps(vars(chat), default=lambda part: {**getattr(part, "__dict__", {})})
    assert "secret-header" not in repr(chat) + repr(vars(chat)) + repr(chat.identity)


def test_what_decides_a_reply_is_in_the_identity(server: StubServer):
    plain = model(server).identity
    for options in (
        {"temperature": 1.0},
        {"seed": 1},
        {"max_tokens": 7},
        {"structured": "none"},
        {"extra_body": {"think": False}},
        {"revision": "r2"},
    ):
        assert model(server, **options).identity != plain, options
    assert model(server, concurrency=3, timeout_seconds=1, max_retries=9).identity == plain


@pytest.mark.slow
def test_memory_does_not_grow_with_the_prompts_beyond_the_replies(server: StubServer):
    def peak(prompts: list[Prompt]) -> int:
        tracemalloc.start()
        try:
            model(server, concurrency=8, timeout_seconds=60).reply(prompts)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    server.behave, server.remember = lambda _: Response(completion("ok")), False
    few, many = ask(*["x" * 20_000] * 20), ask(*["x" * 20_000] * 220)
    peak(few)
    assert peak(many) - peak(few) < 1_000_000, "5 KB a prompt, replies included; a prompt has 20"
