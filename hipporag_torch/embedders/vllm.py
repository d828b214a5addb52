"""Embedding in this process, through vLLM's offline engine."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders import hub, model_folder
from hipporag_torch.embedders.check import checked_rows, checked_texts, wrong_dimension
from hipporag_torch.embedders.instructions import Instructions
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.vllm_engine import Engine, engine, imported_vllm
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role

Pooling = Literal["last", "cls", "mean"]
_POOLINGS = ("last", "cls", "mean")


class VLLMEmbedder:
    """Any embedding model that vLLM runs. Nothing is imported, fetched or loaded before it is needed.

    model: a local folder (an existing one, or anything that starts with `.`, `/` or `~`), or a hub id.
    revision: branch, tag or commit of a hub model; resolved once, and the commit is recorded.
    dim: length of a vector. Stating it lets the identity be known without starting the engine.
    instructions: role → text put before every text of that role. The model's own prompts are not used.
    pooling: how token vectors become one: `last`, `cls` or `mean`. None: as the model's own files say.
    max_tokens: tokens that are read of a text, instruction included, the rest is cut; by default what the
        model's own files say, else all that vLLM takes.
    batch_size: texts that are handed to the engine at once, at least 1.
    tensor_parallel_size, gpu_memory_utilization, dtype: as vLLM's own.
    trust_remote_code: run Python that comes with the model; needs a local folder or a commit as revision.
    engine_options: any other argument of `vllm.LLM`.

    Its identity is not that of the same model on sentence-transformers: vectors differ in their last digits.
    """

    def __init__(
        self,
        *,
        model: str,
        revision: str | None = None,
        dim: int | None = None,
        instructions: Mapping[Role, str] | None = None,
        pooling: Pooling | None = None,
        max_tokens: int | None = None,
        batch_size: int = 512,
        tensor_parallel_size: int = 1,
        gpu_memory_utilization: float = 0.9,
        dtype: str = "auto",
        trust_remote_code: bool = False,
        engine_options: Mapping[str, Any] | None = None,
    ) -> None:
        for option, value in (
            ("dim", dim),
            ("max_tokens", max_tokens),
            ("batch_size", batch_size),
            ("tensor_parallel_size", tensor_parallel_size),
        ):
            if value is not None and value < 1:
                raise ConfigError(f"embedder.{option} must be at least 1, got {value}")
        if not 0 < gpu_memory_utilization <= 1:
            raise ConfigError(
                f"embedder.gpu_memory_utilization must be above 0 and at most 1, got {gpu_memory_utilization}"
            )
        if pooling is not None and pooling not in _POOLINGS:
            raise ConfigError(f"embedder.pooling must be one of {', '.join(_POOLINGS)}, got {pooling!r}")
        self._local = hub.local_folder(model) if hub.is_folder(model) else None
        if self._local and revision is not None:
            raise ConfigError(
                f"embedder.revision={revision} is for hub models, but {model} is a folder; leave it out"
            )
        if trust_remote_code and not (self._local or hub.is_commit(revision)):
            raise ConfigError(
                f"embedder.trust_remote_code=true runs code from {model}, so it needs the commit that you "
                f"have read: embedder.revision must be 40 hexadecimal digits, got {revision!r}"
            )
        self._model_id, self._revision, self._declared_dim = model, revision, dim
        self._name = f"vllm:{self._local.resolve().name if self._local else model}"
        self._instructions, self._batch_size = Instructions(instructions), batch_size
        self._pooling, self._max_tokens = pooling, max_tokens
        self._stated = {
            "runner": "pooling",
            "tensor_parallel_size": tensor_parallel_size,
            "gpu_memory_utilization": gpu_memory_utilization,
            "dtype": dtype,
            "trust_remote_code": trust_remote_code,
        }
        self._engine_options = dict(engine_options or {})
        self._lock = RLock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Reading it starts the engine only if `dim` was not stated; a hub model's files are fetched."""
        with self._lock:
            return self._identity

    def instruction(self, role: Role) -> str:
        return self._instructions.of(role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's. Texts go to the engine `batch_size` at a time."""
        texts = checked_texts(texts)
        prompt = self.instruction(role)
        dim = self.identity.dim
        rows = torch.zeros(len(texts), dim)
        for start in range(0, len(texts), self._batch_size):
            lot = texts[start : start + self._batch_size]
            with self._lock:
                emb = self._rows([prompt + text for text in lot])
            if emb.shape[1] != dim:
                raise wrong_dimension(self._name, declared=dim, real=emb.shape[1])
            rows[start : start + len(lot)] = checked_rows(emb, lot, dim=dim, embedder=self._name)
            progress(f"embed {role}", start + len(lot), len(texts))
        return rows

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        inputs = [self.instruction(role) + text for text in checked_texts(texts)]
        if not inputs:
            return []
        with self._lock:
            limit = self._limit
            return [len(tokens) > limit for tokens in self._tokens(inputs, None)]

    def _rows(self, inputs: Sequence[str]) -> Tensor:
        # Tokens instead of texts: vLLM refuses what is too long, and cuts in its own way if it is told to.
        prompts = [{"prompt_token_ids": tokens} for tokens in self._tokens(inputs, self._limit)]
        try:
            with self._engine.lock:
                outputs = self._engine.llm.embed(prompts, use_tqdm=False)
        except (ValueError, RuntimeError) as error:
            raise BackendError(
                f"vLLM failed to embed with {self._name}: {error}; its own log says more, and the model must "
                "be one that it can embed with"
            ) from error
        return torch.tensor([output.outputs.embedding for output in outputs], dtype=torch.float32)

    def _tokens(self, inputs: Sequence[str], limit: int | None) -> list[list[int]]:
        cut = {"truncation": True, "max_length": limit} if limit else {"truncation": False}
        tokens = self._tokenizer(list(inputs), verbose=False, **cut)["input_ids"]
        # A tokenizer without special tokens makes nothing of an empty text, of which vLLM makes no vector.
        return [row or [self._blank] for row in tokens]

    @cached_property
    def _blank(self) -> int:
        ids = (self._tokenizer.eos_token_id, self._tokenizer.bos_token_id, self._tokenizer.pad_token_id)
        return next((token for token in ids if token is not None), 0)

    @cached_property
    def _limit(self) -> int:
        stated = self._max_tokens or model_folder.max_tokens(self._folder)
        most = self._engine.context_tokens
        if self._max_tokens is not None and self._max_tokens > most:
            raise ConfigError(
                f"embedder.max_tokens={self._max_tokens}, but vLLM runs {self._name} with {most} tokens; set "
                "it to at most that, or engine_options.max_model_len"
            )
        return min(stated or most, most)

    @cached_property
    def _folder(self) -> Path:
        return self._local or hub.hub_snapshot(self._model_id, self._revision)

    @cached_property
    def _identity(self) -> EmbedderIdentity:
        folder = self._folder
        return EmbedderIdentity(
            name=self._name,
            weights=f"sha256:{model_folder.folder_digest(folder)}" if self._local else folder.name,
            dim=self._declared_dim or self._rows(["dimension"]).shape[1],
            pooling=self._pooling or self._own_pooling(folder),
            max_tokens=self._max_tokens or model_folder.max_tokens(folder),
            instructions=self._instructions.as_tuple(),
        )

    @staticmethod
    def _own_pooling(folder: Path) -> str:
        """vLLM reads sentence-transformers' files; without them its choice hangs on the architecture."""
        return model_folder.pooling(folder) if (folder / "modules.json").is_file() else "vllm"

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(
            self._folder, trust_remote_code=self._stated["trust_remote_code"], local_files_only=True
        )

    @cached_property
    def _engine(self) -> Engine:
        imported_vllm()
        stated = {"model": str(self._folder), **self._stated}
        if self._pooling is not None:
            from vllm.config import PoolerConfig  # pyright: ignore[reportMissingImports]

            stated["pooler_config"] = PoolerConfig(seq_pooling_type=self._pooling.upper())  # pyright: ignore
        return engine(stated, self._engine_options)
