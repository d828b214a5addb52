"""A stand-in for the vllm package, with the real signatures as far as our code uses them (vLLM 0.32).

`scripts/check_vllm.sh` holds the same calls against the real package.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@dataclass
class StructuredOutputsParams:
    json: str | dict[str, Any] | None = None


@dataclass
class SamplingParams:
    temperature: float = 1.0
    seed: int | None = None
    max_tokens: int | None = 16
    structured_outputs: StructuredOutputsParams | None = None


@dataclass
class PoolerConfig:
    seq_pooling_type: str | None = None


def echo(text: str) -> str:
    return f"reply to {text}"


def sums(tokens: list[int]) -> list[float]:
    return [float(sum(tokens[place::3]) + 1) for place in range(3)]


class FakeVLLM:
    """What a test sees: the engines that were started, and what they were asked.

    answer: the reply to a last message, whose tokens are its words; an exception is raised.
    vector: the vector of a text's tokens.
    """

    def __init__(
        self,
        answer: Callable[[str], str] = echo,
        vector: Callable[[list[int]], list[float]] = sums,
    ) -> None:
        self.answer = answer
        self.vector = vector
        self.engines: list[Any] = []
        self.chats: list[dict[str, Any]] = []
        self.embedded: list[list[int]] = []
        self.finish: dict[str, str] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeVLLM":
        vllm, sampling, config = (
            ModuleType(name) for name in ("vllm", "vllm.sampling_params", "vllm.config")
        )
        vllm.LLM, vllm.SamplingParams = self._engine_class(), SamplingParams  # pyright: ignore
        sampling.StructuredOutputsParams = StructuredOutputsParams  # pyright: ignore
        config.PoolerConfig = PoolerConfig  # pyright: ignore
        for module in (vllm, sampling, config):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        return self

    def _engine_class(self) -> type:
        fake = self

        @dataclass
        class Output:
            prompt_token_ids: list[int]
            outputs: Any = field(default_factory=list)

        class LLM:
            def __init__(
                self,
                model: str,
                *,
                runner: str = "auto",
                trust_remote_code: bool = False,
                tensor_parallel_size: int = 1,
                dtype: str = "auto",
                quantization: str | None = None,
                seed: int = 0,
                gpu_memory_utilization: float = 0.92,
                pooler_config: PoolerConfig | None = None,
                structured_outputs_config: dict[str, Any] | None = None,
                enforce_eager: bool = False,
                **kwargs: Any,
            ) -> None:
                if unknown := set(kwargs) - {"pipeline_parallel_size", "data_parallel_size", "max_model_len"}:
                    raise TypeError(f"EngineArgs got an unexpected argument {sorted(unknown)[0]!r}")
                if kwargs.get("data_parallel_size", 1) > 1:
                    raise ValueError("LLM(data_parallel_size=2) is not supported for single-process usage")
                if gpu_memory_utilization == 1.0:
                    raise RuntimeError("Engine core initialization failed")
                self.options = {"model": model, "runner": runner, "pooler_config": pooler_config, **kwargs}
                self.options["structured_outputs_config"] = structured_outputs_config
                self.model_config = SimpleNamespace(max_model_len=kwargs.get("max_model_len") or 64)
                fake.engines.append(self)

            def chat(
                self,
                messages: Sequence[list[dict[str, str]]],
                sampling_params: Sequence[SamplingParams],
                use_tqdm: bool = True,
                *,
                chat_template: str | None = None,
                chat_template_content_format: str = "auto",
                chat_template_kwargs: dict[str, Any] | None = None,
            ) -> list[Output]:
                fake.chats.append({**locals(), "self": None})
                pairs = zip(messages, sampling_params, strict=True)
                return [self._output(one[-1]["content"], params) for one, params in pairs]

            def _output(self, text: str, params: SamplingParams) -> Output:
                words = fake.answer(text).split(" ")
                limit = params.max_tokens or 16
                finish = "length" if len(words) > limit else fake.finish.get(text, "stop")
                got = SimpleNamespace(
                    text=" ".join(words[:limit]), token_ids=words[:limit], finish_reason=finish
                )
                return Output([0] * len(text.split()), [got])

            def embed(
                self, prompts: Sequence[dict[str, list[int]]], *, use_tqdm: bool = True
            ) -> list[Output]:
                outputs = []
                for one in prompts:
                    tokens = one["prompt_token_ids"]
                    if not 0 < len(tokens) <= self.model_config.max_model_len:
                        raise ValueError(f"the prompt has {len(tokens)} tokens")
                    fake.embedded.append(tokens)
                    outputs.append(Output(tokens, SimpleNamespace(embedding=fake.vector(tokens))))
                return outputs

        return LLM
