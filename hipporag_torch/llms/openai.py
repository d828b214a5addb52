"""Any OpenAI-compatible endpoint, Azure's and Bedrock's included, through the official SDK."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Literal

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Prompt, accept_all
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.estimate import estimated_tokens
from hipporag_torch.llms.event_loop import Put, run_beside
from hipporag_torch.llms.openai_client import Endpoint
from hipporag_torch.llms.openai_requests import Requests
from hipporag_torch.llms.pricing import Prices, prices_of
from hipporag_torch.protocols import Progress, no_progress

_log = logging.getLogger(__name__)

Structured = Literal["json_schema", "json_object", "none"]


class OpenAIChatModel:
    """Many requests in flight over one endpoint; the SDK retries, and waits as long as Retry-After says.

    model: as the endpoint calls it; on Azure the deployment.
    base_url: the API's address, which usually ends with /v1. None: OpenAI's own.
    api_key_env: the environment variable that holds the key, read at each call. None: no key is sent.
        An endpoint on this machine needs none either.
    api_version: makes `base_url` an Azure resource. headers: sent with each request, never shown.
    temperature, seed: None leaves them to the endpoint. max_tokens: of a reply, at least 1.
    max_tokens_name: what the endpoint calls that limit; reasoning models of OpenAI want
        "max_completion_tokens".
    structured: what is sent for a schema; "none" sends the prompt alone.
    extra_body: further fields of the request, such as chat template options.
    concurrency: requests in flight, 1 to 1,000. timeout_seconds: of one try. max_retries: tries after the
        first. give_up_after: connection failures, timeouts and server errors in a row, each after its
        retries, after which the rest of a batch fails without being asked.
    context_tokens: of prompt and reply together, if it is known. revision: of the weights, if it is known.
    prompt_price, completion_price: money for a million tokens; None where no money is to be counted.

    Calls may be made where an event loop runs: requests have a thread of their own, while `accept`,
    `progress` and `show` are called in the caller's. `retries` counts what was sent again for replies that
    came; `estimated_replies` those whose tokens the endpoint did not count, so that `usage` is an estimate.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        temperature: float | None = 0.0,
        max_tokens: int = 2048,
        max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        seed: int | None = None,
        structured: Structured = "json_schema",
        extra_body: Mapping[str, Any] | None = None,
        concurrency: int = 64,
        timeout_seconds: float = 120.0,
        max_retries: int = 5,
        give_up_after: int = 16,
        context_tokens: int | None = None,
        revision: str = "",
        prompt_price: float | None = None,
        completion_price: float | None = None,
    ) -> None:
        _require_text(model)
        _require_choice("max_tokens_name", max_tokens_name, ("max_tokens", "max_completion_tokens"))
        _require_choice("structured", structured, ("json_schema", "json_object", "none"))
        for name, value, most in (
            ("max_tokens", max_tokens, None),
            ("concurrency", concurrency, 1000),
            ("give_up_after", give_up_after, None),
            ("context_tokens", context_tokens, None),
        ):
            _require_count(name, value, least=1, most=most)
        _require_count("max_retries", max_retries, least=0, most=100)
        if not 0 < timeout_seconds < float("inf"):
            raise ConfigError(f"llm.timeout_seconds must be above 0, got {timeout_seconds}")
        self._endpoint = Endpoint(base_url, api_key_env, api_version, dict(headers or {}))
        self._model, self._revision, self._context_tokens = model, revision, context_tokens
        self._concurrency, self._give_up_after = concurrency, give_up_after
        self._max_tokens, self._max_tokens_name, self._structured = max_tokens, max_tokens_name, structured
        self._transport = {"timeout_seconds": timeout_seconds, "max_retries": max_retries}
        self._decoding = {"temperature": temperature, "seed": seed}
        self._extra_body = dict(extra_body or {})
        self._prices = prices_of(prompt_price, completion_price)
        self.retries = 0
        self.estimated_replies = 0

    def __repr__(self) -> str:
        return f"OpenAIChatModel(model={self._model!r}, endpoint={self._endpoint.url!r})"

    @property
    def identity(self) -> ChatIdentity:
        settings = {
            **self._decoding,
            "api_version": self._endpoint.api_version,
            self._max_tokens_name: self._max_tokens,
            "structured": self._structured,
            "extra_body": self._extra_body,
        }
        shown = ((name, json.dumps(value, sort_keys=True)) for name, value in settings.items())
        return ChatIdentity(self._endpoint.url, self._model, self._revision, tuple(sorted(shown)))

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens

    @property
    def max_tokens(self) -> int:
        """The most tokens of a reply, unless a call says otherwise."""
        return self._max_tokens

    @property
    def prices(self) -> Prices | None:
        """What a million tokens cost, if that was stated."""
        return self._prices

    def count_tokens(self, prompt: Prompt) -> int:
        """An estimate, rather too high than too low."""
        return estimated_tokens(prompt)

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        """As every chat model's. After `give_up_after` failures in a row the rest is not asked."""
        if not prompts:
            return []
        requests = self._requests(schema, max_tokens)
        replies: list[ChatReply | None] = [None] * len(prompts)
        done = count(1)

        def take(item: tuple[int, ChatReply]) -> None:
            number, reply = item
            replies[number] = reply
            accept(number, reply)
            progress("chat", next(done), len(prompts))

        async def produce(put: Put[tuple[int, ChatReply]]) -> None:
            await requests.ask_all(prompts, put)

        try:
            run_beside(produce, take, most_waiting=2 * self._concurrency)
        finally:
            self._note(requests)
        return [reply for reply in replies if reply is not None]

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        """As every chat model's; a reply that breaks off is an error, though `show` had its beginning."""
        requests = self._requests(None, max_tokens)
        last: list[ChatReply] = []

        def take(item: str | ChatReply) -> None:
            if isinstance(item, str):
                show(item)
            else:
                last.append(item)

        async def produce(put: Put[str | ChatReply]) -> None:
            await requests.stream(prompt, put)

        try:
            run_beside(produce, take, most_waiting=2 * self._concurrency)
        finally:
            self._note(requests)
        return last[0]

    def _requests(self, schema: Mapping[str, Any] | None, max_tokens: int | None) -> Requests:
        _require_count("max_tokens", max_tokens, least=1, most=None)
        limit = self._max_tokens if max_tokens is None else max_tokens
        body: dict[str, Any] = {name: value for name, value in self._decoding.items() if value is not None}
        body |= {"model": self._model, self._max_tokens_name: limit}
        if self._extra_body:
            body["extra_body"] = self._extra_body
        if schema is not None and self._structured == "json_schema":
            wanted = {"name": "reply", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif schema is not None and self._structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return Requests(
            self._endpoint,
            body,
            max_tokens=limit,
            concurrency=self._concurrency,
            give_up_after=self._give_up_after,
            **self._transport,
        )

    def _note(self, requests: Requests) -> None:
        if requests.estimated and not self.estimated_replies:
            _log.warning(
                "%s counts no tokens: those in reports and budgets are estimates", self._endpoint.url
            )
        self.estimated_replies += requests.estimated
        self.retries += requests.retries


def _require_text(model: str) -> None:
    if not isinstance(model, str) or not model.strip():
        raise ConfigError(f"llm.model must be the name of a model, got {model!r}")


def _require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ConfigError(f"llm.{name} must be one of {', '.join(choices)}, got {value!r}")


def _require_count(name: str, value: int | None, *, least: int, most: int | None) -> None:
    if value is None and name in ("context_tokens", "max_tokens"):
        return
    if not isinstance(value, int) or value < least or (most is not None and value > most):
        span = f"at least {least}" if most is None else f"{least} to {most:,}"
        raise ConfigError(f"llm.{name} must be a whole number, {span}, got {value!r}")
