"""A chat model in this process, through transformers."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any, Literal

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.batches import Waiting, answered_in_batches
from hipporag_torch.llms.chat_template import ChatTemplate, UnusablePrompt
from hipporag_torch.llms.estimate import estimated_tokens
from hipporag_torch.llms.generator import Generator, context_of, generator, tokenizer_and_config
from hipporag_torch.llms.local_weights import LocalWeights
from hipporag_torch.llms.option_checks import require_count, require_mapping, require_temperature
from hipporag_torch.llms.token_stream import TokenStream
from hipporag_torch.protocols import Progress, no_progress

_log = logging.getLogger(__name__)

DType = Literal["auto", "float32", "float16", "bfloat16"]
_DTYPES = ("auto", "float32", "float16", "bfloat16")


class TransformersChatModel:
    """Any causal language model with a chat template. Nothing is fetched or loaded before it is needed.

    model: a local folder (an existing one, or anything that starts with `.`, `/` or `~`), or a hub id.
    revision: branch, tag or commit of a hub model; resolved once, and the commit is recorded.
    device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`. device_map: `auto`, or anything that
        accelerate takes, to spread the weights over several devices; then `device` must be `auto`.
    dtype: of the weights; `auto` is the one that they are stored in.
    batch_size: prompts that go through the model at once, at least 1. When memory runs out it is halved.
    temperature: 0 takes the likeliest token each time; above 0 replies are drawn, and depend on the seed
        and on the batch that a prompt is in. The model's own other settings, such as top_k, take no part.
    max_tokens: of a reply, unless a call says otherwise; less where the context has no more room.
    chat_template_options: what the template is given, such as {"enable_thinking": False}; the key
        `chat_template` is a template instead of the model's own.
    trust_remote_code: run Python that comes with the model; needs a local folder or a commit as revision.
    gguf_file: the GGUF file in the folder that holds weights and tokenizer.

    A schema cannot be demanded here: the prompt alone has to ask for JSON. Models of equal weights, device
    and dtype in one process share them. Threads take turns.
    """

    def __init__(
        self,
        *,
        model: str,
        revision: str | None = None,
        device: str = "auto",
        device_map: str | Mapping[str, Any] | None = None,
        dtype: DType = "auto",
        batch_size: int = 8,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        seed: int = 0,
        chat_template_options: Mapping[str, Any] | None = None,
        trust_remote_code: bool = False,
        gguf_file: str | None = None,
    ) -> None:
        require_count("batch_size", batch_size)
        require_count("max_tokens", max_tokens)
        require_count("seed", seed, least=0)
        require_temperature(temperature)
        if dtype not in _DTYPES:
            raise ConfigError(f"llm.dtype must be one of {', '.join(_DTYPES)}, got {dtype!r}")
        if device_map is not None and device != "auto":
            raise ConfigError(
                f"llm.device={device} and llm.device_map={device_map!r} both say where the weights go; "
                "set llm.device=auto, or leave device_map out"
            )
        self._weights = LocalWeights(
            model=model, revision=revision, trust_remote_code=trust_remote_code, gguf_file=gguf_file
        )
        self._device, self._device_map, self._dtype = resolved_device(device), device_map, dtype
        self._temperature, self._max_tokens, self._seed = float(temperature), max_tokens, seed
        self._options = require_mapping("chat_template_options", chat_template_options)
        self._batch_size = batch_size
        # One model serves all threads; a tokenizer is not made for several at once either.
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"TransformersChatModel(model={self._weights.name!r})"

    @property
    def identity(self) -> ChatIdentity:
        """Reading it loads no weights; a hub model's files are fetched."""
        with self._lock:
            return self._identity

    @property
    def context_tokens(self) -> int | None:
        with self._lock:
            return self._context

    @property
    def max_tokens(self) -> int:
        """The most tokens of a reply, unless a call says otherwise."""
        return self._max_tokens

    @property
    def prices(self) -> None:
        """Tokens of one's own model cost nothing."""
        return None

    @property
    def batch_size(self) -> int:
        """Prompts that go through the model at once; less than was asked for once memory ran out."""
        return self._batch_size

    def count_tokens(self, prompt: Prompt) -> int:
        """As the model's tokenizer and template make them; an estimate for what they refuse."""
        with self._lock:
            try:
                return len(self._template.tokens(prompt))
            except UnusablePrompt:
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
        """As every chat model's. Prompts of like length share a batch, the longest first."""
        replies: dict[int, ChatReply] = {}

        def hand(number: int, reply: ChatReply) -> None:
            replies[number] = reply
            accept(number, reply)
            progress("chat", len(replies), len(prompts))

        waiting = []
        for number, prompt in enumerate(prompts):
            try:
                waiting.append(Waiting(number, *self._fitting(prompt, max_tokens)))
            except UnusablePrompt as unusable:
                hand(number, unusable.reply())
        self._batch_size = answered_in_batches(waiting, self._batch_size, self._answered, hand)
        return [replies[number] for number in range(len(prompts))]

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        try:
            tokens, room = self._fitting(prompt, max_tokens)
        except UnusablePrompt as unusable:
            return unusable.reply()
        streamer = TokenStream(show, self._template.text, prompt_tokens=len(tokens))
        replies: list[ChatReply] = []
        answered_in_batches(
            [Waiting(0, tokens, room)],
            1,
            lambda batch: self._answered(batch, streamer),
            lambda _, reply: replies.append(reply),
        )
        return replies[0]

    def _fitting(self, prompt: Prompt, max_tokens: int | None) -> tuple[list[int], int]:
        require_count("max_tokens", max_tokens, none=True)
        with self._lock:
            limit = self._max_tokens if max_tokens is None else max_tokens
            return self._template.fitting(prompt, limit, self._context)

    def _answered(self, batch: Sequence[Waiting], streamer: TokenStream | None = None) -> list[ChatReply]:
        """The replies of prompts that have the same room for them."""
        with self._lock:
            continued = self._generator.generate(
                [waiting.tokens for waiting in batch],
                max_tokens=batch[0].room,
                temperature=self._temperature,
                seed=self._seed,
                streamer=streamer,
            )
            pairs = zip(batch, continued, strict=True)
            return [self._reply(len(waiting.tokens), tokens) for waiting, tokens in pairs]

    def _reply(self, prompt_tokens: int, tokens: list[int]) -> ChatReply:
        usage = Usage(calls=1, prompt_tokens=prompt_tokens, completion_tokens=len(tokens))
        text = self._template.text(tokens)
        if tokens[-1] not in self._generator.end_tokens:
            return ChatReply(text, "length", usage)
        if not text:
            why = f"the reply of {self._weights.name} is empty"
            return ChatReply("", "error", usage, why, permanent=self._temperature == 0)
        return ChatReply(text, "stop", usage)

    @cached_property
    def _identity(self) -> ChatIdentity:
        settings = {
            "chat_template_options": self._options,
            "dtype": self._dtype,
            "gguf_file": self._weights.gguf_file,
            "max_tokens": self._max_tokens,
            "seed": self._seed if self._temperature > 0 else None,
            "temperature": self._temperature,
        }
        shown = ((name, json.dumps(value, sort_keys=True)) for name, value in sorted(settings.items()))
        revision = self._weights.resolved_revision()
        return ChatIdentity("transformers", self._weights.name, revision, tuple(shown))

    @cached_property
    def _read(self) -> tuple[Any, Any]:
        return tokenizer_and_config(self._weights)

    @property
    def _context(self) -> int | None:
        return context_of(self._read[1])

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self._read[0], model=self._weights.name, options=self._options)

    @cached_property
    def _generator(self) -> Generator:
        return generator(self._weights, device=self._device, device_map=self._device_map, dtype=self._dtype)
