"""Embedding only what is not known yet, and keeping it as it comes."""

from collections.abc import Callable, Sequence

from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.embedders.check import checked_texts, embedded
from hipporag_torch.protocols import Embedder, Progress
from hipporag_torch.types import Role

Known = Callable[[list[str]], tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]]
"""Distinct texts → which of them have a vector already, and these; zeros for the others."""

Keep = Callable[[list[str], Float32[Tensor, "texts dim"]], Float32[Tensor, "texts dim"]]
"""Texts and their new vectors → the vectors as they are kept."""


def embed_missing(
    embedder: Embedder,
    texts: Sequence[str],
    role: Role,
    *,
    known: Known,
    keep: Keep,
    chunk_size: int,
    progress: Progress,
) -> Float32[Tensor, "texts dim"]:
    """One row per text; `embedder` is asked once for each distinct text that is not known.

    `keep` gets `chunk_size` texts at a time: an interrupted run has kept all but the last chunk.
    `progress` counts distinct texts, the known ones included.
    """
    row_of = {text: row for row, text in enumerate(dict.fromkeys(checked_texts(texts)))}
    unique = list(row_of)
    found, rows = known(unique)
    missing = [row for row, is_known in enumerate(found.tolist()) if not is_known]
    held = len(unique) - len(missing)
    if held:
        progress(f"embed {role}", held, len(unique))
    for start in range(0, len(missing), chunk_size):
        chosen = missing[start : start + chunk_size]
        chunk = [unique[row] for row in chosen]
        shifted = _shifted(progress, by=held + start, total=len(unique))
        rows[chosen] = keep(chunk, embedded(embedder, chunk, role, shifted))
    return rows if len(unique) == len(texts) else rows[[row_of[text] for text in texts]]


def _shifted(progress: Progress, *, by: int, total: int) -> Progress:
    """Progress within a chunk, told as progress of the whole call."""
    return lambda stage, done, _: progress(stage, by + done, total)
