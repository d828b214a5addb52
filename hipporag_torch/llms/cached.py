"""A chat model that asks a cache first."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hipporag_torch.chat import Accept, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.llms.cache import ReplyCache, reply_key
from hipporag_torch.llms.wrapped import Wrapped
from hipporag_torch.protocols import ChatModel, Progress, no_progress

# A transaction costs milliseconds on a disk: so often at most, and at the end of a batch.
_SECONDS_BETWEEN_WRITES = 0.25


class CachedChatModel(Wrapped):
    """Wraps any chat model: a prompt is asked once, in any process, until its reply was accepted.

    Only accepted replies are kept, within a quarter of a second, and those of an interrupted batch too.
    A cached reply that is not accepted is forgotten, so that the next call asks the model again. A prompt
    that stands several times in a batch is asked once; `accept` is called for each, and the copies count as
    cached. Nothing judges a streamed reply, so `stream` takes from the cache and adds nothing.

    `hits` and `misses` count the distinct prompts of each call that the cache held, or did not.
    """

    def __init__(self, *, model: ChatModel, cache: ReplyCache) -> None:
        super().__init__(model)
        self._cache = cache
        self.hits = 0
        self.misses = 0

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        """As every chat model's; what the cache holds is accepted before anything is asked."""
        identity = self.identity
        numbers: dict[bytes, list[int]] = {}
        for number, prompt in enumerate(prompts):
            numbers.setdefault(reply_key(identity, prompt, max_tokens, schema), []).append(number)
        batch = _Batch(prompts, numbers, self._cache, accept)
        known = self._cache.get(list(numbers)) if numbers else {}
        missing = [key for key in numbers if key not in known]
        self.hits += len(known)
        self.misses += len(missing)
        batch.take_known(known)
        held = len(prompts) - sum(len(numbers[key]) for key in missing)
        if held:
            progress("chat", held, len(prompts))
        if missing:
            self._ask(
                batch, missing, schema, max_tokens, _shifted(progress, held, len(prompts), len(missing))
            )
        return [batch.replies[number] for number in range(len(prompts))]

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        key = reply_key(self.identity, prompt, max_tokens, None)
        if (known := self._cache.get([key]).get(key)) is None:
            self.misses += 1
            return self._model.stream(prompt, show, max_tokens=max_tokens)
        self.hits += 1
        show(known.text)
        return known

    def _ask(
        self,
        batch: "_Batch",
        keys: Sequence[bytes],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
        progress: Progress,
    ) -> None:
        try:
            self._model.reply(
                [batch.prompt(key) for key in keys],
                schema=schema,
                max_tokens=max_tokens,
                accept=lambda number, reply: batch.take_new(keys[number], reply),
                progress=progress,
            )
        finally:
            batch.write()


class _Batch:
    """The replies of one call as they come together, and those that wait to be written."""

    def __init__(
        self,
        prompts: Sequence[Prompt],
        numbers: Mapping[bytes, list[int]],
        cache: ReplyCache,
        accept: Accept,
    ) -> None:
        self.replies: dict[int, ChatReply] = {}
        self._prompts, self._numbers, self._cache, self._accept = prompts, numbers, cache, accept
        self._unwritten: list[tuple[bytes, Prompt, ChatReply]] = []
        self._written_at = float("-inf")

    def prompt(self, key: bytes) -> Prompt:
        return self._prompts[self._numbers[key][0]]

    def take_known(self, known: Mapping[bytes, ChatReply]) -> None:
        rejected = [key for key, reply in known.items() if not self._give(key, reply, reply)]
        if rejected:
            self._cache.forget(rejected)

    def take_new(self, key: bytes, reply: ChatReply) -> bool:
        accepted = self._give(key, reply, replace(reply, usage=_as_cached(reply.usage)))
        if accepted and reply.finish != "error":
            self._unwritten.append((key, self.prompt(key), reply))
            if time.monotonic() - self._written_at >= _SECONDS_BETWEEN_WRITES:
                self.write()
        return accepted

    def write(self) -> None:
        if self._unwritten:
            self._cache.put(self._unwritten)
            self._unwritten = []
        self._written_at = time.monotonic()

    def _give(self, key: bytes, first: ChatReply, copy: ChatReply) -> bool:
        """Hand a reply to all prompts of its key; whether the first of them could use it."""
        verdicts = []
        for number in self._numbers[key]:
            reply = copy if verdicts else first
            self.replies[number] = reply
            verdicts.append(self._accept(number, reply))
        return verdicts[0]


def _as_cached(usage: Usage) -> Usage:
    return Usage(
        cached_calls=usage.calls + usage.cached_calls,
        cached_prompt_tokens=usage.prompt_tokens + usage.cached_prompt_tokens,
        cached_completion_tokens=usage.completion_tokens + usage.cached_completion_tokens,
    )


def _shifted(progress: Progress, held: int, total: int, asked: int) -> Progress:
    """Progress among the prompts that are asked, told as progress of the whole call, copies at its end."""
    return lambda stage, done, _: progress(stage, total if done == asked else held + done, total)
