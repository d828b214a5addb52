"""What every embedder demands of its texts, and of the rows that a model returns for them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.errors import BackendError, InputError
from hipporag_torch.protocols import Embedder
from hipporag_torch.types import Progress, Role, no_progress, require_unicode

# A row this near to length 1 is a unit vector already: it keeps its bits, so checking twice changes nothing.
_UNIT_TOLERANCE = 1e-6


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list. Raises `InputError` for a lone string, a non-string or invalid Unicode."""
    if isinstance(texts, str):
        raise InputError(
            f"texts must be a sequence of strings, got one string: {texts!r:.80}; pass a list that holds it"
        )
    return [require_unicode(text, f"text {row}") for row, text in enumerate(texts)]


def embedded(
    embedder: Embedder, texts: Sequence[str], role: Role, progress: Progress = no_progress
) -> Float32[Tensor, "texts dim"]:
    """What `embedder` gives for `texts`, checked against what it declares (see `checked_rows`)."""
    identity = embedder.identity
    return checked_rows(
        embedder.embed(texts, role, progress), texts, dim=identity.dim, embedder=identity.name
    )


def checked_rows(
    emb: Tensor, texts: Sequence[str], *, dim: int, embedder: str
) -> Float32[Tensor, "texts dim"]:
    """`emb` as float32 rows of length 1 on the CPU; a zero row stays zero, being similar to nothing.

    Raises `BackendError` if the tensor is not (len(texts), `dim`) or holds a NaN or an infinity.
    """
    if emb.ndim != 2 or emb.shape[0] != len(texts):
        raise BackendError(
            f"the embedder {embedder} returned a tensor of shape {tuple(emb.shape)} for {len(texts)} texts, "
            f"expected ({len(texts)}, {dim}); its embed() must return one row per text"
        )
    if emb.shape[1] != dim:
        raise wrong_dimension(embedder, declared=dim, real=emb.shape[1])
    rows = emb.detach().to(device="cpu", dtype=torch.float32)
    finite = torch.isfinite(rows).all(dim=1)
    if not finite.all():
        first = int((~finite).nonzero()[0, 0])
        raise BackendError(
            f"the embedder {embedder} returned NaN or infinity for {int((~finite).sum())} of {len(texts)} "
            f"texts, first for text {first}: {texts[first]!r:.80}; expected finite numbers: "
            "embed that text alone, and check the model's weights and precision"
        )
    # In float64 a row of very large or very small numbers has a usable norm too.
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
    keep = (norms == 0) | ((norms - 1).abs() < _UNIT_TOLERANCE)
    return (rows / torch.where(keep, 1.0, norms)).to(torch.float32).contiguous()


def wrong_dimension(embedder: str, *, declared: int, real: int) -> BackendError:
    """The error for a model whose vectors are not as long as its options say."""
    return BackendError(
        f"the embedder {embedder} is declared with dim={declared}, but its vectors have {real} numbers; "
        f"set embedder.dim={real}, or choose the model that has {declared}"
    )
