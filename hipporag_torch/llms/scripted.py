"""A chat model that answers from a table or a function: for tests, demonstrations and dry tries."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.pricing import Prices, prices_of
from hipporag_torch.llms.scripted_rules import Rule, read_rules, rules_of
from hipporag_torch.protocols import Progress, no_progress

Answer = Callable[[Prompt], str | ChatReply]


class ScriptedChatModel:
    """Deterministic replies, one prompt after the other. Tokens are words.

    replies: a mapping from the exact text of the last user message to the reply; or a function of the
        prompt, which may return a whole `ChatReply`, or raise what `reply` is to raise; or the path of a
        JSON file of rules, as `scripted_rules` describes them. A prompt that nothing fits has a reply that
        is an error and says so.
    model: what the identity calls it. max_tokens: words of a reply, unless a call says otherwise; the rest
        is cut. context_tokens: a longer prompt is a permanent error, as with a real model.
    prompt_price, completion_price: money for a million tokens.

    `calls` counts the prompts that were asked, failures included, and `asked` holds them in order.
    """

    def __init__(
        self,
        *,
        replies: Mapping[str, str] | Answer | str | Path,
        model: str = "scripted",
        max_tokens: int = 2048,
        context_tokens: int | None = None,
        prompt_price: float | None = None,
        completion_price: float | None = None,
    ) -> None:
        if context_tokens is not None and context_tokens < 1:
            raise ConfigError(f"llm.context_tokens must be at least 1, or null, got {context_tokens}")
        if max_tokens < 1:
            raise ConfigError(f"llm.max_tokens must be at least 1, got {max_tokens}")
        self._rules: list[Rule] = []
        self._answer: Answer = self._by_rules
        if isinstance(replies, str | Path):
            self._rules, digest = read_rules(Path(replies).expanduser())
        elif isinstance(replies, Mapping):
            self._rules, digest = rules_of(replies), _digest(replies)
        else:
            self._answer, digest = replies, ""
        self._model, self._revision = model, digest
        self._max_tokens, self._context_tokens = max_tokens, context_tokens
        self._prices = prices_of(prompt_price, completion_price)
        self.asked: list[Prompt] = []

    @property
    def calls(self) -> int:
        return len(self.asked)

    @property
    def identity(self) -> ChatIdentity:
        settings = (("max_tokens", str(self._max_tokens)),)
        return ChatIdentity("scripted", self._model, self._revision, settings)

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens

    @property
    def max_tokens(self) -> int:
        """The most words of a reply, unless a call says otherwise."""
        return self._max_tokens

    @property
    def prices(self) -> Prices | None:
        """What a million tokens cost, if that was stated."""
        return self._prices

    def count_tokens(self, prompt: Prompt) -> int:
        """Its words."""
        return sum(_words(message.text) for message in prompt)

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        replies = []
        for number, prompt in enumerate(prompts):
            reply = self._one(prompt, max_tokens)
            replies.append(reply)
            accept(number, reply)
            progress("chat", number + 1, len(prompts))
        return replies

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        """As every chat model's, word by word."""
        reply = self._one(prompt, max_tokens)
        for piece in re.findall(r"\s*\S+\s*$|\s*\S+|\s+", reply.text):
            show(piece)
        return reply

    def _one(self, prompt: Prompt, max_tokens: int | None) -> ChatReply:
        self.asked.append(prompt)
        tokens = self.count_tokens(prompt)
        if self._context_tokens is not None and tokens > self._context_tokens:
            why = f"the prompt has {tokens} words, more than the context of {self._context_tokens}"
            return ChatReply("", "error", error=why, permanent=True)
        answer = self._answer(prompt)
        if isinstance(answer, str):
            answer = ChatReply(answer)
        if answer.finish == "error" or answer.usage != Usage():
            return answer
        text, finish = answer.text, answer.finish
        limit = self._max_tokens if max_tokens is None else max_tokens
        if _words(text) > limit:
            cut = list(re.finditer(r"\S+", text))[limit - 1].end() if limit > 0 else 0
            text, finish = text[:cut], "length"
        usage = Usage(calls=1, prompt_tokens=tokens, completion_tokens=_words(text))
        return ChatReply(text, finish, usage, answer.error, answer.permanent)

    def _by_rules(self, prompt: Prompt) -> ChatReply:
        last = next((message.text for message in reversed(prompt) if message.role == "user"), "")
        for rule in self._rules:
            if rule.fits(last):
                return rule.answer()
        return ChatReply("", "error", error=f"no scripted reply fits {last[:80]!r}", permanent=True)


def _words(text: str) -> int:
    return len(text.split())


def _digest(replies: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(replies), sort_keys=True).encode()).hexdigest()
