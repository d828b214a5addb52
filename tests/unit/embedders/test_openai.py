"""Embeddings of an OpenAI-compatible endpoint, from a stub server."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.embedders.cut import cut_at
from hipporag_torch.embedders.openai import OpenAIEmbedder
from hipporag_torch.embedders.openai_requests import Limits
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.estimate import estimated_text_tokens

from ...llm_stub import Request, Response, StubServer, failure

Behave = Callable[[Request], Response]


def vector(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


def embeddings(texts: list[str]) -> dict[str, Any]:
    """As OpenAI writes them, but the last comes first: the index counts."""
    rows = [{"object": "embedding", "index": row, "embedding": vector(t)} for row, t in enumerate(texts)]
    used = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": "m", "data": rows[::-1], "usage": used}


def embed(request: Request) -> Response:
    return Response(embeddings(request.body["input"]))


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer(embed) as stub:
        yield stub


def embedder_of(server: StubServer, **options: Any) -> OpenAIEmbedder:
    settings = {"model": "m", "dim": 3, "base_url": server.url, "max_retries": 0, **options}
    return OpenAIEmbedder(**settings)


def unit(text: str) -> torch.Tensor:
    row = torch.tensor(vector(text))
    return row / row.norm()


def test_rows_are_in_order_over_many_requests_in_flight(server: StubServer):
    texts = [f"text {row} " + "x" * (row % 7) for row in range(23)]
    embedder = embedder_of(server, batch_size=4, concurrency=3)
    steps: list[tuple[str, int, int]] = []
    rows = embedder.embed(texts, "passage", lambda *step: steps.append(step))
    torch.testing.assert_close(rows, torch.stack([unit(text) for text in texts]))
    assert sorted(len(request.body["input"]) for request in server.requests) == [3, 4, 4, 4, 4, 4]
    assert [step[1] for step in steps] == sorted({step[1] for step in steps})
    assert steps[-1] == ("embed passage", 23, 23)
    assert embedder.tokens == 23
    assert server.most_in_flight <= 3


def test_a_request_says_model_and_encoding_and_dimensions_where_wanted(server: StubServer):
    embedder_of(server).embed(["a"], "passage")
    embedder_of(server, send_dimensions=True, instructions={"fact": "f: "}).embed(["a"], "fact")
    plain, shortened = (request.body for request in server.requests)
    assert plain == {"input": ["a"], "model": "m", "encoding_format": "float"}
    assert shortened == {"input": ["f: a"], "model": "m", "encoding_format": "float", "dimensions": 3}
    assert server.requests[0].path == "/v1/embeddings"


def test_azure_names_the_deployment_in_the_path(server: StubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123456789")
    base = server.url.removesuffix("/v1")
    embedder = embedder_of(
        server, base_url=base, api_version="2024-10-21", api_key_env="AZURE_OPENAI_API_KEY", model="dep"
    )
    assert embedder.embed(["a"], "fact").shape == (1, 3)
    request = server.requests[0]
    assert request.path == "/openai/deployments/dep/embeddings?api-version=2024-10-21"
    assert request.headers["api-key"] == "azure-key-0123456789"


def test_a_text_of_nothing_has_the_zero_vector_and_is_not_sent(server: StubServer):
    rows = embedder_of(server).embed(["", "a", ""], "passage")
    assert rows.norm(dim=1).tolist() == pytest.approx([0, 1, 0])
    assert server.requests[0].body["input"] == ["a"]
    assert embedder_of(server).embed([""], "passage").shape == (1, 3)
    assert len(server.requests) == 1


def test_long_texts_are_cut_before_they_are_sent_and_named(server: StubServer):
    embedder = embedder_of(server, max_tokens=4, instructions={"fact": "query: "})
    texts = ["one two", "one two three four five", "ab"]
    assert embedder.truncated(texts, "passage") == [False, True, False]
    embedder.embed(texts, "passage")
    assert server.requests[0].body["input"] == ["one two", "one two three ", "ab"]
    embedder.embed(["one two"], "fact")
    assert server.requests[1].body["input"] == ["query: one "]
    whole = embedder_of(server, max_tokens=None)
    assert whole.truncated(["x " * 99_999], "passage") == [False]
    whole.embed(["x " * 9_999], "passage")
    assert server.requests[2].body["input"] == ["x " * 9_999]


@given(st.text(max_size=80), st.integers(1, 12))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, most: int):
    cut = cut_at(text, most)
    assert text.startswith(cut)
    assert estimated_text_tokens(cut) <= most
    assert cut == text or estimated_text_tokens(text[: len(cut) + 1]) > most


@given(st.lists(st.text(max_size=30)), st.integers(1, 5), st.integers(1, 20))
def test_batches_hold_every_row_once_in_order_within_the_limits(texts: list[str], most: int, tokens: int):
    batches = Limits(texts=most, tokens=tokens).batches(texts)
    assert [row for batch in batches for row in batch] == list(range(len(texts)))
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(estimated_text_tokens(texts[row]) for row in batch) <= tokens


def test_rate_limits_and_server_errors_are_retried(server: StubServer):
    def behave(request: Request) -> Response:
        if request.number == 0:
            return Response({}, 429, headers={"Retry-After": "0.01"})
        return failure(503, "busy") if request.number == 1 else embed(request)

    server.behave = behave
    embedder = embedder_of(server, max_retries=3)
    torch.testing.assert_close(embedder.embed(["a"], "passage")[0], unit("a"))
    assert embedder.retries == 2


def test_a_wrong_dimension_is_an_error_that_names_both(server: StubServer):
    with pytest.raises(BackendError, match=r"m is declared with dim=4, but its vectors have 3 numbers"):
        embedder_of(server, dim=4).embed(["a"], "passage")


def row(index: int, embedding: Any) -> dict[str, Any]:
    return {"index": index, "embedding": embedding}


@pytest.mark.parametrize(
    "body",
    [
        "<html>hello</html>",
        {"data": None},
        {"data": [row(0, [1.0])]},
        {"data": [row(0, [1.0]), row(0, [1.0])]},
        {"data": [row(0, [1.0]), row(1, [1.0, 2.0])]},
        {"data": [row(0, [1.0]), row(1, "AACAPw==")]},
        {"data": [row(0, [1.0]), 7]},
    ],
)
def test_what_is_no_embedding_for_each_text_is_refused(server: StubServer, body: Any):
    server.behave = lambda request: Response(body)
    with pytest.raises(BackendError, match=r"did not give the embeddings .* ends with /v1"):
        embedder_of(server, dim=1).embed(["a", "b"], "passage")


def test_numbers_that_are_not_finite_are_refused(server: StubServer):
    server.behave = lambda request: Response('{"data": [{"index": 0, "embedding": [NaN, 1, 1]}]}')
    with pytest.raises(BackendError, match="NaN or infinity"):
        embedder_of(server).embed(["a"], "passage")


@pytest.mark.parametrize(
    ("response", "error", "said"),
    [
        (failure(401, "bad key sk-secret-0123456789"), ConfigError, r"refuses the key in STUB_KEY \(401\)"),
        (failure(404, "no such model"), ConfigError, r"knows no model 'm'.*set embedder.model or"),
        (failure(402, "pay"), BackendError, r"no credit left"),
        (failure(429, "x", code="insufficient_quota"), BackendError, r"no credit left"),
        (failure(400, "bad", param="dimensions"), ConfigError, r"embedder.send_dimensions=false"),
        (
            failure(400, "This model's maximum context length is 8192 tokens"),
            BackendError,
            r"a request of 1 texts, the longest of about 1 tokens, .*; lower embedder.max_tokens",
        ),
        (failure(500, "oops"), BackendError, r"answered 500, tried up to 1 times: oops"),
        (Response(delay=1.0), BackendError, r"did not answer within 0.2 s.*embedder.timeout_seconds"),
        (Response("x" * 99, midway=True), BackendError, r"cannot be reached or broke off"),
    ],
)
def test_errors_say_what_to_do_and_hold_no_key(
    server: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    response: Response,
    error: type[Exception],
    said: str,
):
    monkeypatch.setenv("STUB_KEY", "sk-secret-0123456789")
    server.behave = lambda request: response
    with pytest.raises(error, match=said) as caught:
        embedder_of(server, api_key_env="STUB_KEY", timeout_seconds=0.2).embed(["a"], "passage")
    assert "sk-secret" not in str(caught.value)


def test_an_endpoint_that_is_down():
    with StubServer(embed) as stub:
        embedder = embedder_of(stub)
    with pytest.raises(BackendError, match=r"cannot be reached .* correct embedder.base_url"):
        embedder.embed(["a"], "passage")


def test_one_failure_ends_the_call_and_the_other_requests(server: StubServer):
    server.behave = lambda request: failure(400, "no") if request.number == 2 else embed(request)
    with pytest.raises(BackendError, match="answered 400"):
        embedder_of(server, batch_size=1, concurrency=1).embed(list("abcdefgh"), "passage")
    assert len(server.requests) <= 4


def test_no_key_is_an_error_that_names_the_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    embedder = OpenAIEmbedder(model="m", dim=3, base_url="https://example.org/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match=r"NO_SUCH_KEY is not set; .* embedder.api_key_env"):
        embedder.embed(["a"], "passage")
    assert "NO_SUCH_KEY" not in os.environ


def test_the_identity_does_not_hang_on_the_address(server: StubServer):
    one = embedder_of(server, instructions={"fact": "f"}).identity
    assert one == OpenAIEmbedder(model="m", dim=3, instructions={"fact": "f"}).identity
    assert (one.name, one.dim, one.pooling, one.max_tokens) == ("m", 3, "service", 8192)
    assert embedder_of(server, revision="7").identity != embedder_of(server).identity


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": ""}, r"embedder.model must be the name of a model"),
        ({"dim": 0}, r"embedder.dim must be at least 1, got 0"),
        ({"concurrency": 1001}, r"embedder.concurrency must be 1 to 1,000, got 1001"),
        ({"batch_tokens": 0}, r"embedder.batch_tokens"),
        ({"timeout_seconds": 0}, r"embedder.timeout_seconds must be above 0"),
        ({"base_url": "localhost"}, r"embedder.base_url must be an address"),
        ({"api_version": "1", "base_url": None}, r"embedder.api_version makes it an Azure endpoint"),
        ({"headers": {"X": "a\nb"}}, r"embedder.headers: 'X'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        OpenAIEmbedder(**{"model": "m", "dim": 3, **options})
