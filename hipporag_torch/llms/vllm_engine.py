"""vLLM's offline engine: imported and started only where it is used, one for all who want the same."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from hipporag_torch.errors import BackendError, ConfigError


@dataclass(eq=False)
class Engine:
    """A running `vllm.LLM`, and the lock to hold while it is asked: it serves one thread at a time."""

    llm: Any
    lock: Lock = field(default_factory=Lock)

    @property
    def context_tokens(self) -> int:
        """The most tokens of one sequence."""
        return self.llm.model_config.max_model_len


_engines: "WeakValueDictionary[str, Engine]" = WeakValueDictionary()
_starting = Lock()


def imported_vllm() -> Any:
    """The package. Raises `ConfigError` if it is not installed."""
    try:
        import vllm  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError(
            f"vLLM cannot be imported ({error}); it needs the extra: pip install 'hipporag-torch[vllm]'"
        ) from error
    return vllm


def engine(stated: Mapping[str, Any], engine_options: Mapping[str, Any]) -> Engine:
    """The same engine for the same options, as long as anybody uses it.

    stated: arguments of `LLM` that have an option of their own; `engine_options`: any others. Raises
    `ConfigError` for options that vLLM does not take, and `BackendError` if the engine does not start.
    """
    if both := sorted(set(stated) & set(engine_options)):
        raise ConfigError(
            f"engine_options states {', '.join(both)}, which the model states by itself; use its own options"
        )
    options = {**stated, **engine_options}
    key = json.dumps(options, sort_keys=True, default=repr)
    with _starting:
        found = _engines.get(key)
        if found is None:
            found = _engines[key] = Engine(_started(options))
        return found


def _started(options: Mapping[str, Any]) -> Any:
    llm = imported_vllm().LLM
    try:
        return llm(**options)
    except (TypeError, ValueError) as error:
        hint = ""
        if options.get("data_parallel_size", 1) > 1:
            hint = (
                "; one process cannot hold several replicas: extract in shards, one process each, or serve "
                "the model with `vllm serve --data-parallel-size` and use llm=openai"
            )
        raise ConfigError(f"vLLM refuses these options: {_first_lines(error)}{hint}") from error
    except (RuntimeError, OSError, ImportError) as error:
        raise BackendError(
            f"vLLM could not start with {options['model']}: {_first_lines(error)}; its own log above says "
            "more; if memory ran out, lower gpu_memory_utilization or max_model_len, or raise "
            "tensor_parallel_size"
        ) from error


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
