"""A chat model in this process, through vLLM's offline engine."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Finish, Prompt, Usage, accept_all
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.chat_template import ChatTemplate, UnusablePrompt
from hipporag_torch.llms.estimate import estimated_tokens
from hipporag_torch.llms.generator import context_of, tokenizer_and_config
from hipporag_torch.llms.local_weights import LocalWeights
from hipporag_torch.llms.option_checks import require_count, require_mapping, require_temperature
from hipporag_torch.llms.vllm_engine import Engine, engine, imported_vllm
from hipporag_torch.protocols import Progress, no_progress

# "repetition" is vLLM's cut of a reply that goes round in circles.
_FINISHES: dict[str, Finish] = {"stop": "stop", "length": "length", "repetition": "length"}
# Without this a model may fill a reply up with blanks between the fields of its JSON.
_COMPACT_JSON = {"backend": "xgrammar", "disable_any_whitespace": True}


class VLLMChatModel:
    """Any model that vLLM runs. Nothing is imported, fetched or loaded before it is needed.

    model: a local folder (an existing one, or anything that starts with `.`, `/` or `~`), or a hub id.
    revision: branch, tag or commit of a hub model; resolved once, and the commit is recorded.
    tensor_parallel_size, pipeline_parallel_size, data_parallel_size, gpu_memory_utilization, max_model_len,
        dtype, quantization: as vLLM's own. max_model_len: of prompt and reply together; None: the model's.
    seed, temperature: 0 takes the likeliest token each time; above 0 each reply is drawn with the seed.
    max_tokens: of a reply, unless a call says otherwise; less where the context has no more room.
    structured: demand a schema's JSON where one is given; False leaves it to the prompt.
    chat_template_options: what the template is given, such as {"enable_thinking": False}; the key
        `chat_template` is a template instead of the model's own.
    trust_remote_code: run Python that comes with the model; needs a local folder or a commit as revision.
    batch_size: prompts that are handed to the engine at once, at least 1; after each lot their replies are
        handed on. The engine itself decides how many of them it runs together.
    engine_options: any other argument of `vllm.LLM`.

    Models with equal weights and engine options in one process share one engine. Threads take turns.
    """

    def __init__(
        self,
        *,
        model: str,
        revision: str | None = None,
        tensor_parallel_size: int = 1,
        pipeline_parallel_size: int = 1,
        data_parallel_size: int = 1,
        gpu_memory_utilization: float = 0.9,
        max_model_len: int | None = None,
        dtype: str = "auto",
        quantization: str | None = None,
        seed: int = 0,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        structured: bool = True,
        chat_template_options: Mapping[str, Any] | None = None,
        trust_remote_code: bool = False,
        batch_size: int = 512,
        engine_options: Mapping[str, Any] | None = None,
    ) -> None:
        parallel = {
            "tensor_parallel_size": tensor_parallel_size,
            "pipeline_parallel_size": pipeline_parallel_size,
            "data_parallel_size": data_parallel_size,
        }
        for name, value in (*parallel.items(), ("batch_size", batch_size), ("max_tokens", max_tokens)):
            require_count(name, value)
        require_count("max_model_len", max_model_len, none=True)
        require_count("seed", seed, least=0)
        require_temperature(temperature)
        if not 0 < gpu_memory_utilization <= 1:
            raise ConfigError(
                f"llm.gpu_memory_utilization must be above 0 and at most 1, got {gpu_memory_utilization}"
            )
        self._weights = LocalWeights(model=model, revision=revision, trust_remote_code=trust_remote_code)
        self._deciding = {"dtype": dtype, "max_model_len": max_model_len, "quantization": quantization}
        self._stated = {
            **parallel,
            **self._deciding,
            "gpu_memory_utilization": gpu_memory_utilization,
            "trust_remote_code": trust_remote_code,
            "runner": "generate",
            "seed": seed,
        }
        if structured:
            self._stated["structured_outputs_config"] = _COMPACT_JSON
        self._engine_options = require_mapping("engine_options", engine_options)
        self._template_options = require_mapping("chat_template_options", chat_template_options)
        self._temperature, self._max_tokens, self._seed = float(temperature), max_tokens, seed
        self._structured, self._batch_size = structured, batch_size
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"VLLMChatModel(model={self._weights.name!r})"

    @property
    def identity(self) -> ChatIdentity:
        """Reading it starts no engine; a hub model's files are fetched."""
        with self._lock:
            return self._identity

    @property
    def context_tokens(self) -> int | None:
        """As the option or the model's configuration says, so that no engine is started to know it."""
        with self._lock:
            return self._deciding["max_model_len"] or context_of(self._read[1])

    @property
    def max_tokens(self) -> int:
        """The most tokens of a reply, unless a call says otherwise."""
        return self._max_tokens

    @property
    def prices(self) -> None:
        """Tokens of one's own model cost nothing."""
        return None

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
        """As every chat model's. Prompts go to the engine `batch_size` at a time."""
        require_count("max_tokens", max_tokens, none=True)
        limit = self._max_tokens if max_tokens is None else max_tokens
        replies: list[ChatReply] = []
        for start in range(0, len(prompts), self._batch_size):
            lot = prompts[start : start + self._batch_size]
            with self._lock:
                answers = self._answered(lot, schema, limit)
            for number, reply in enumerate(answers, start):
                replies.append(reply)
                accept(number, reply)
                progress("chat", len(replies), len(prompts))
        return replies

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        """The reply at once: the offline engine hands over whole replies only."""
        (reply,) = self.reply([prompt], max_tokens=max_tokens)
        if reply.text:
            show(reply.text)
        return reply

    def _answered(
        self, prompts: Sequence[Prompt], schema: Mapping[str, Any] | None, limit: int
    ) -> list[ChatReply]:
        replies: list[ChatReply | None] = [None] * len(prompts)
        rooms: dict[int, int] = {}
        template, context = self._template, self._engine.context_tokens
        for number, prompt in enumerate(prompts):
            # vLLM would refuse the whole lot because of one prompt that it can't take.
            try:
                _, rooms[number] = template.fitting(prompt, limit, context)
            except UnusablePrompt as unusable:
                replies[number] = unusable.reply()
        if rooms:
            outputs = self._chat([prompts[number] for number in rooms], schema, list(rooms.values()))
            for number, output in zip(rooms, outputs, strict=True):
                replies[number] = self._reply(output)
        return [reply for reply in replies if reply is not None]

    def _chat(
        self, prompts: Sequence[Prompt], schema: Mapping[str, Any] | None, rooms: Sequence[int]
    ) -> list[Any]:
        options = dict(self._template_options)
        conversations = [
            [{"role": message.role, "content": message.text} for message in prompt] for prompt in prompts
        ]
        try:
            with self._engine.lock:
                return self._engine.llm.chat(
                    conversations,
                    sampling_params=[self._sampling(schema, room) for room in rooms],
                    use_tqdm=False,
                    chat_template=options.pop("chat_template", None),
                    # Whatever the template's own look makes vLLM guess: our messages are texts.
                    chat_template_content_format="string",
                    chat_template_kwargs=options or None,
                )
        except ValueError as error:
            way_out = "; set llm.structured=false, and the prompt alone asks for JSON" if schema else ""
            raise ConfigError(
                f"vLLM refuses the request for {self._weights.name}: {error}{way_out}"
            ) from error
        except RuntimeError as error:
            raise BackendError(
                f"vLLM failed with {self._weights.name}: {error}; its own log says more; run again, what was "
                "had is kept"
            ) from error

    def _sampling(self, schema: Mapping[str, Any] | None, max_tokens: int) -> Any:
        from vllm.sampling_params import StructuredOutputsParams  # pyright: ignore[reportMissingImports]

        demanded = StructuredOutputsParams(json=dict(schema)) if schema and self._structured else None
        return imported_vllm().SamplingParams(
            temperature=self._temperature,
            seed=self._seed if self._temperature > 0 else None,
            max_tokens=max_tokens,
            structured_outputs=demanded,
        )

    def _reply(self, output: Any) -> ChatReply:
        (chosen,) = output.outputs
        usage = Usage(
            calls=1, prompt_tokens=len(output.prompt_token_ids or ()), completion_tokens=len(chosen.token_ids)
        )
        finish = _FINISHES.get(chosen.finish_reason or "")
        if finish is None:
            why = f"vLLM ended the reply with {chosen.finish_reason!r}; ask again"
            return ChatReply("", "error", error=why)
        if not chosen.text and finish == "stop":
            why = f"the reply of {self._weights.name} is empty"
            return ChatReply("", "error", usage, why, permanent=self._temperature == 0)
        return ChatReply(chosen.text, finish, usage)

    @cached_property
    def _identity(self) -> ChatIdentity:
        settings = {
            **self._deciding,
            "chat_template_options": self._template_options,
            "engine_options": self._engine_options,
            "max_tokens": self._max_tokens,
            "seed": self._seed if self._temperature > 0 else None,
            "structured": self._structured,
            "temperature": self._temperature,
        }
        shown = ((name, json.dumps(value, sort_keys=True)) for name, value in sorted(settings.items()))
        revision = self._weights.resolved_revision()
        return ChatIdentity("vllm", self._weights.name, revision, tuple(shown))

    @cached_property
    def _read(self) -> tuple[Any, Any]:
        return tokenizer_and_config(self._weights)

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self._read[0], model=self._weights.name, options=self._template_options)

    @cached_property
    def _engine(self) -> Engine:
        imported_vllm()
        return engine({"model": str(self._weights.folder()), **self._stated}, self._engine_options)
