"""One batch of requests to an OpenAI-compatible endpoint, in the event loop that they share."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.llms.estimate import estimated_tokens
from hipporag_torch.llms.event_loop import Put
from hipporag_torch.llms.openai_client import Endpoint, imported_openai
from hipporag_torch.llms.openai_errors import Asked, NoCompletion, endpoint_is_down, failed, never_answered
from hipporag_torch.llms.openai_replies import answered, reply_of, usage_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SHOWN = 120


class Requests:
    """What all prompts of a batch have in common, and what it has learnt about its endpoint so far.

    body: the request's fields besides the messages. The other options are those of `OpenAIChatModel`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        body: dict[str, Any],
        *,
        max_tokens: int,
        concurrency: int,
        give_up_after: int,
        timeout_seconds: float,
        max_retries: int,
    ) -> None:
        self._endpoint, self._body, self._max_tokens = endpoint, body, max_tokens
        self._concurrency, self._give_up_after = concurrency, give_up_after
        self._timeout_seconds, self._max_retries = timeout_seconds, max_retries
        self._key = endpoint.key()
        self._openai = imported_openai()
        self._answered = False
        self._failures_in_a_row = 0
        self._given_up = ""
        self.retries = 0
        self.estimated = 0

    async def ask_all(self, prompts: Sequence[Prompt], put: Put[tuple[int, ChatReply]]) -> None:
        """Puts every prompt's number and reply. There are as many workers as requests in flight."""
        numbers = iter(range(len(prompts)))

        async def work(client: "AsyncOpenAI") -> None:
            for number in numbers:
                await put((number, await self._ask(client, prompts[number])))

        async with self._client() as client:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._concurrency, len(prompts))):
                        group.create_task(work(client))
            except BaseExceptionGroup as errors:
                # All workers meet the same wall, such as a wrong key: one of them tells.
                raise errors.exceptions[0] from None

    async def stream(self, prompt: Prompt, put: Put[str | ChatReply]) -> None:
        """Puts the pieces of the reply's text, and last the reply."""
        async with self._client() as client:
            try:
                reply = await self._streamed(client, prompt, put)
            except (self._openai.OpenAIError, NoCompletion, UnicodeError, ValueError) as error:
                reply = failed(error, self._asked(prompt), answered_before=False)
            await put(reply)

    def _client(self) -> "AsyncOpenAI":
        return self._endpoint.client(
            self._key,
            deployment=self._body["model"],
            timeout_seconds=self._timeout_seconds,
            max_retries=self._max_retries,
        )

    async def _ask(self, client: "AsyncOpenAI", prompt: Prompt) -> ChatReply:
        if self._given_up:
            return ChatReply("", "error", error=self._given_up)
        try:
            completion = await self._completion(client, prompt)
        except (self._openai.OpenAIError, NoCompletion, UnicodeError) as error:
            return self._failed(error, prompt)
        got = answered(completion, prompt)
        self._answered = True
        self._failures_in_a_row = 0
        self.estimated += got.estimated
        return got.reply

    async def _completion(self, client: "AsyncOpenAI", prompt: Prompt) -> Any:
        raw = await client.chat.completions.with_raw_response.create(messages=_messages(prompt), **self._body)
        self.retries += raw.retries_taken
        try:
            completion = raw.parse()
        except json.JSONDecodeError:
            completion = None
        if not isinstance(completion, self._openai.types.chat.ChatCompletion):
            raise NoCompletion(raw.headers.get("content-type", ""), raw.text[:_SHOWN])
        return completion

    async def _streamed(self, client: "AsyncOpenAI", prompt: Prompt, put: Put[str | ChatReply]) -> ChatReply:
        raw = await client.chat.completions.with_raw_response.create(
            messages=_messages(prompt), stream=True, stream_options={"include_usage": True}, **self._body
        )
        self.retries += raw.retries_taken
        content_type = raw.headers.get("content-type", "")
        if not content_type.startswith("text/event-stream"):
            raise NoCompletion(content_type, "no stream of events")
        texts, refusals, finish, given = [], [], None, None
        async for chunk in raw.parse():
            given = getattr(chunk, "usage", None) or given
            for choice in (getattr(chunk, "choices", None) or [])[:1]:
                finish = choice.finish_reason or finish
                refusals.append(getattr(choice.delta, "refusal", None) or "")
                if piece := getattr(choice.delta, "content", None) or "":
                    texts.append(piece)
                    await put(piece)
        text, refusal = "".join(texts), "".join(refusals)
        usage, guessed = usage_of(given, prompt, text + refusal)
        self.estimated += guessed
        if finish is None:
            return ChatReply("", "error", usage, "the stream ended in the middle of the reply; ask again")
        return reply_of(text, refusal, finish, usage)

    def _failed(self, error: Exception, prompt: Prompt) -> ChatReply:
        asked = self._asked(prompt)
        reply = failed(error, asked, answered_before=self._answered)
        if not endpoint_is_down(error):
            return reply
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._give_up_after:
            if not self._answered:
                raise never_answered(asked, reply.error, self._failures_in_a_row) from None
            self._given_up = (
                f"not asked: {self._failures_in_a_row} prompts in a row failed, the last one: {reply.error}; "
                "run again when the endpoint answers, what was had is kept"
            )
        return reply

    def _asked(self, prompt: Prompt) -> Asked:
        return Asked(
            url=self._endpoint.url,
            model=self._body["model"],
            key_env=self._endpoint.api_key_env,
            azure=self._endpoint.api_version is not None,
            formatted="response_format" in self._body,
            max_tokens=self._max_tokens,
            prompt_tokens=estimated_tokens(prompt),
            timeout_seconds=self._timeout_seconds,
            tries=self._max_retries + 1,
            secrets=self._endpoint.secrets(self._key),
        )


def _messages(prompt: Prompt) -> Any:
    for message in prompt:
        # The SDK would fail while it encodes the body, in a way that looks like a bug.
        message.text.encode("utf-8")
    return [{"role": message.role, "content": message.text} for message in prompt]
