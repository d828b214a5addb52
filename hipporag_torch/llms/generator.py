"""A loaded causal language model of transformers: tokens → tokens, in batches."""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import torch

from hipporag_torch.embedders.loading import without_progress_bar
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.local_weights import LocalWeights


def tokenizer_and_config(weights: LocalWeights) -> tuple[Any, Any]:
    """The model's tokenizer and configuration, without its weights. Raises `BackendError`."""
    from transformers import AutoConfig, AutoTokenizer

    with _loading(weights):
        return tuple(
            kind.from_pretrained(
                weights.folder(),
                gguf_file=weights.gguf_file,
                trust_remote_code=weights.trust_remote_code,
                local_files_only=True,
            )
            for kind in (AutoTokenizer, AutoConfig)
        )  # pyright: ignore[reportReturnType]


def context_of(config: Any) -> int | None:
    """The tokens that a model has positions for, as its configuration says; None if it doesn't."""
    return getattr(config.get_text_config(), "max_position_embeddings", None)


_loaded: "WeakValueDictionary[str, Generator]" = WeakValueDictionary()
_load = Lock()


def generator(
    weights: LocalWeights,
    *,
    device: torch.device,
    device_map: str | Mapping[str, Any] | None,
    dtype: str,
) -> "Generator":
    """The same loaded model for all who want the same, as long as anybody uses it."""
    key = repr((weights, device, device_map, dtype))
    with _load:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = Generator(weights, device=device, device_map=device_map, dtype=dtype)
        return found


class Generator:
    """The weights on their devices; threads take turns. Raises `BackendError` if they cannot be loaded.

    device_map: what accelerate is to spread them by, instead of `device`.
    """

    def __init__(
        self,
        weights: LocalWeights,
        *,
        device: torch.device,
        device_map: str | Mapping[str, Any] | None,
        dtype: str,
    ) -> None:
        from transformers import AutoModelForCausalLM

        if device_map is not None and importlib.util.find_spec("accelerate") is None:
            raise ConfigError("llm.device_map needs the extra: pip install 'hipporag-torch[accelerate]'")
        with _loading(weights):
            model = AutoModelForCausalLM.from_pretrained(
                weights.folder(),
                gguf_file=weights.gguf_file,
                trust_remote_code=weights.trust_remote_code,
                local_files_only=True,
                dtype=dtype,
                device_map=dict(device_map) if isinstance(device_map, Mapping) else device_map,
            )
            self._model: Any = model
            if device_map is None:
                self._model.to(device)
        self._model.eval()
        self._lock = Lock()
        given = self._model.generation_config.eos_token_id
        self.end_tokens: tuple[int, ...] = tuple([given] if isinstance(given, int) else given or ())

    def generate(
        self,
        prompts: Sequence[list[int]],
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        streamer: Any = None,
    ) -> list[list[int]]:
        """The tokens that continue each prompt, an end token last if the model ended by itself.

        Padded on the left, so that all prompts end side by side. Raises `torch.OutOfMemoryError`.
        """
        from transformers import GenerationConfig

        width = max(len(tokens) for tokens in prompts)
        pad = self.end_tokens[0] if self.end_tokens else 0
        padding = [width - len(tokens) for tokens in prompts]
        rows = [[pad] * blanks + tokens for blanks, tokens in zip(padding, prompts, strict=True)]
        read = [[0] * blanks + [1] * (width - blanks) for blanks in padding]
        # Stated in full: whatever else the model's own settings say, such as top_k, takes no part.
        settings = GenerationConfig(
            max_new_tokens=max_tokens,
            do_sample=temperature > 0,
            temperature=temperature if temperature > 0 else 1.0,
            top_p=1.0,
            top_k=0 if temperature > 0 else 50,
            repetition_penalty=1.0,
            eos_token_id=list(self.end_tokens) or None,
            pad_token_id=pad,
        )
        device = self._model.device
        with self._lock, torch.inference_mode(), _seeded(seed, device, needed=temperature > 0):
            whole = self._model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(read, device=device),
                generation_config=settings,
                streamer=streamer,
            )
        return [self._until_end(tokens) for tokens in whole[:, width:].tolist()]

    def _until_end(self, tokens: list[int]) -> list[int]:
        """Without what fills a row up while others of its batch go on."""
        ends = (place for place, token in enumerate(tokens) if token in self.end_tokens)
        return tokens[: next(ends, len(tokens)) + 1]


@contextmanager
def _seeded(seed: int, device: torch.device, *, needed: bool) -> Iterator[None]:
    """Sampling from its own seed, with the process's random numbers as they were afterwards."""
    if not needed:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def _loading(weights: LocalWeights) -> Iterator[None]:
    from safetensors import SafetensorError

    if weights.gguf_file is not None and importlib.util.find_spec("gguf") is None:
        raise ConfigError("llm.gguf_file needs the extra: pip install 'hipporag-torch[gguf]'")
    try:
        with without_progress_bar():
            yield
    except torch.OutOfMemoryError as error:
        raise BackendError(
            f"the weights of {weights.name} do not fit into the memory of the device: {error}; set "
            "llm.device_map=auto to spread them, or llm.dtype=bfloat16, or choose a smaller model"
        ) from error
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise BackendError(
            f"the model {weights.name} could not be loaded: {reason}; expected a folder that "
            "AutoModelForCausalLM and AutoTokenizer of transformers load: copy it again, whole, or install "
            "what the message names"
        ) from error
