"""NVIDIA's NV-Embed-v2, which brings its own code and wants its end mark written behind every text."""

from collections.abc import Mapping

from hipporag_torch.embedders import hub
from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
from hipporag_torch.embedders.suffix import SuffixedEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Role

_END = "</s>"


def nv_embed_v2(
    *,
    model: str = "nvidia/NV-Embed-v2",
    revision: str | None = None,
    trust_remote_code: bool = False,
    instructions: Mapping[Role, str] | None = None,
    batch_size: int = 8,
    device: str = "auto",
    max_tokens: int | None = 32768,
) -> SuffixedEmbedder:
    """4,096 numbers a vector, pooled by the model's own latent attention.

    model: the hub id, or a folder with a copy. Its code runs in this process, so `trust_remote_code` and,
    for the hub id, the commit that was read have to be stated. Not tried here: no copy can be had offline.
    """
    pinned = hub.is_folder(model) or hub.is_commit(revision)
    if not (trust_remote_code and pinned):
        raise ConfigError(
            "NV-Embed-v2 runs Python code that comes with it: read that code on the hub, then state "
            "embedder.trust_remote_code=true and the commit that you have read as embedder.revision, 40 "
            f"hexadecimal digits; got {trust_remote_code} and {revision!r}"
        )
    embedder = SentenceTransformerEmbedder(
        model=model,
        revision=revision,
        dim=4096,
        instructions=instructions,
        batch_size=batch_size,
        device=device,
        max_tokens=max_tokens,
        trust_remote_code=True,
    )
    return SuffixedEmbedder(embedder=embedder, suffix=_END)
