"""Loading a sentence-transformers model from a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hipporag_torch.errors import BackendError, ConfigError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def loaded_model(
    folder: Path, *, device: torch.device, max_tokens: int | None, trust_remote_code: bool
) -> "SentenceTransformer":
    """The model, ready to encode, cutting at `max_tokens` if that is stated. Never touches the network.

    Raises `BackendError` if the folder's files do not make a model, `ConfigError` if `max_tokens` is
    more than the model has positions for.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        with without_progress_bar():
            model = SentenceTransformer(
                str(folder), device=str(device), trust_remote_code=trust_remote_code, local_files_only=True
            )
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        raise BackendError(
            f"the embedding model in {folder} could not be loaded: {error}; expected a folder that "
            "SentenceTransformer(folder) loads: copy it again, whole, or install what the message names"
        ) from error
    if max_tokens is not None:
        _cut_at(max_tokens, model)
    return model


def _cut_at(max_tokens: int, model: "SentenceTransformer") -> None:
    config = getattr(model[0], "config", None)
    positions = getattr(config, "max_position_embeddings", None) or 0
    if 0 < positions < max_tokens:
        raise ConfigError(
            f"embedder.max_tokens={max_tokens}, but the model has only {positions} positions; "
            f"set it to at most {positions}, or leave it out to read {model.max_seq_length} tokens"
        )
    model.max_seq_length = max_tokens


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """transformers draws a bar while it loads weights; only the caller's own callable may show anything."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
