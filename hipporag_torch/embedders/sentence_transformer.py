"""Embedding with a sentence-transformers model: from the hub, or from a local folder."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders import hub, model_folder
from hipporag_torch.embedders.check import checked_rows, checked_texts, wrong_dimension
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.embedders.instructions import Instructions
from hipporag_torch.embedders.loading import loaded_model
from hipporag_torch.embedders.token_counts import TokenCounter, counter_of_folder, counter_of_model
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Progress is told, and rows are brought to the CPU, once per this many batches.
_BATCHES = 8
# Texts that are tokenised at once to count their tokens.
_COUNTED = 256
# Tokenizers without a limit state a number beyond all bounds.
_NO_LIMIT = 10**9
# More than any tokenizer puts around a text.
_SPECIAL_TOKENS = 8


class SentenceTransformerEmbedder:
    """Any sentence-transformers model. Nothing is fetched or loaded before it is needed.

    model: a local folder (an existing one, or anything that starts with `.`, `/` or `~`), or a hub id.
    name: what the identity calls the model; by default the hub id, or the folder's own name.
    revision: branch, tag or commit of a hub model; resolved once, and the commit is recorded.
    dim: length of a vector. Stating it lets the identity be known without loading the model.
    instructions: role → text put before every text of that role. The model's own prompts are not used.
    batch_size: texts that go through the model at once, at least 1.
    device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
    max_tokens: tokens that are read of a text, instruction included; by default what the model says.
    trust_remote_code: run Python that comes with the model; needs a local folder or a commit as revision.
    weights_sha256: the digest that model.safetensors must have, as the hub shows it.

    Raises `ConfigError` for options that cannot be, `BackendError` if the model cannot be had or does
    not deliver, and `CompatibilityError` if the weights are not those of `weights_sha256`.
    """

    def __init__(
        self,
        *,
        model: str,
        name: str | None = None,
        revision: str | None = None,
        dim: int | None = None,
        instructions: Mapping[Role, str] | None = None,
        batch_size: int = 64,
        device: str = "auto",
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        weights_sha256: str | None = None,
    ) -> None:
        for option, value in (("dim", dim), ("batch_size", batch_size), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise ConfigError(f"embedder.{option} must be at least 1, got {value}")
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
        self._model_id = model
        self._name = name or (self._local.resolve().name if self._local else model)
        self._revision = revision
        self._declared_dim = dim
        self._instructions = Instructions(instructions)
        self._batch_size = batch_size
        self._max_tokens = max_tokens
        self._trust_remote_code = trust_remote_code
        self._weights_sha256 = weights_sha256
        self.device: torch.device = resolved_device(device)
        # One tokenizer and one model serve all threads, and a tokenizer changes state while it cuts.
        self._lock = RLock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Reading it loads the model only if `dim` was not stated; a hub model's files are fetched."""
        with self._lock:
            return self._identity

    def instruction(self, role: Role) -> str:
        return self._instructions.of(role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        texts = checked_texts(texts)
        prompt = self.instruction(role)
        dim = self.identity.dim
        rows = torch.zeros(len(texts), dim)
        # Texts of like length share a batch, so that little is padding; the longest go first, so that
        # memory runs out at once or never. Their order does not depend on the caller's.
        order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), texts[row]))
        for start in range(0, len(order), _BATCHES * self._batch_size):
            chosen = order[start : start + _BATCHES * self._batch_size]
            chunk = [texts[row] for row in chosen]
            rows[chosen] = checked_rows(self._encoded(chunk, prompt), chunk, dim=dim, embedder=self._name)
            progress(f"embed {role}", start + len(chosen), len(order))
        return rows

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        inputs = [self.instruction(role) + text for text in checked_texts(texts)]
        with self._lock:
            limit = self.identity.max_tokens or self._model.max_seq_length
            if limit is None or limit >= _NO_LIMIT:
                return [False] * len(inputs)
            # An ASCII character is at most one token, beside a few that every text gets. Other
            # characters can be many tokens: only counting tells.
            doubtful = [
                row
                for row, text in enumerate(inputs)
                if not text.isascii() or len(text) + _SPECIAL_TOKENS > limit
            ]
            too_long = [False] * len(inputs)
            for start in range(0, len(doubtful), _COUNTED):
                chosen = doubtful[start : start + _COUNTED]
                counts = self._count_tokens([inputs[row] for row in chosen])
                for row, count in zip(chosen, counts, strict=True):
                    too_long[row] = count > limit
            return too_long

    def _encoded(self, texts: list[str], prompt: str) -> Tensor:
        with self._lock:
            try:
                # An empty prompt is not None: None would bring in the model's own default prompt.
                return self._model.encode(
                    texts,
                    prompt=prompt,
                    batch_size=self._batch_size,
                    convert_to_tensor=True,
                    show_progress_bar=False,
                )
            except torch.OutOfMemoryError as error:
                raise BackendError(
                    f"the embedder {self._name} ran out of memory on {self.device} at "
                    f"batch_size={self._batch_size}, with texts of up to {len(texts[0])} characters; "
                    "set a smaller embedder.batch_size or embedder.max_tokens"
                ) from error

    @cached_property
    def _folder(self) -> Path:
        folder = self._local or hub.hub_snapshot(self._model_id, self._revision)
        if self._weights_sha256 is not None:
            model_folder.require_weights(folder, self._weights_sha256)
        return folder

    @cached_property
    def _count_tokens(self) -> TokenCounter:
        return counter_of_folder(self._folder) or counter_of_model(self._model)

    @cached_property
    def _identity(self) -> EmbedderIdentity:
        folder = self._folder
        return EmbedderIdentity(
            name=self._name,
            weights=f"sha256:{model_folder.folder_digest(folder)}" if self._local else folder.name,
            dim=self._declared_dim or self._dim_of(self._model),
            pooling=model_folder.pooling(folder),
            max_tokens=self._max_tokens or model_folder.max_tokens(folder),
            instructions=self._instructions.as_tuple(),
        )

    @cached_property
    def _model(self) -> "SentenceTransformer":
        model = loaded_model(
            self._folder,
            device=self.device,
            max_tokens=self._max_tokens,
            trust_remote_code=self._trust_remote_code,
        )
        real = self._dim_of(model)
        if self._declared_dim not in (None, real):
            raise wrong_dimension(self._name, declared=self._declared_dim, real=real)
        return model

    def _dim_of(self, model: "SentenceTransformer") -> int:
        # One text tells it on every version of the library, and for models that cannot say it themselves.
        row = model.encode(["dimension"], prompt="", convert_to_tensor=True, show_progress_bar=False)
        return row.shape[1]
