"""Embedding only what is not known yet, and keeping it as it comes."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.embedders.check import checked_texts, embedded
from hipporag_torch.protocols import Embedder, Progress
from hipporag_torch.types import Role

Known = Callable[[list[str]], tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]]
"""Distinct texts → which of them have a vector already, and these; zeros for the others."""

Keep = Callable[[list[str], Float32[Tensor, "texts dim"]], Float32[Tensor, "texts dim"]]
"""Texts and their new vectors → the vectors as they are kept."""

Turn = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""A block that others who share what is kept stay out of; the function is called if it has to wait."""


def embed_missing(
    embedder: Embedder,
    texts: Sequence[str],
    role: Role,
    *,
    known: Known,
    keep: Keep,
    chunk_size: int,
    progress: Progress,
    turn: Turn | None = None,
) -> Float32[Tensor, "texts dim"]:
    """One row per text; `embedder` is asked once for each distinct text that is not known.

    `keep` gets at most `chunk_size` texts at a time: an interrupted run has kept all but the last chunk.
    `progress` counts distinct texts, the known ones included. With `turn` each chunk is looked up again and
    embedded within one, so that those who share what is kept embed no text twice.
    """
    row_of = {text: row for row, text in enumerate(dict.fromkeys(checked_texts(texts)))}
    unique = list(row_of)
    found, rows = known(unique)
    missing = _unknown(list(range(len(unique))), found)
    done = len(unique) - len(missing)
    if done:
        progress(f"embed {role}", done, len(unique))
    for start in range(0, len(missing), chunk_size):
        chosen = missing[start : start + chunk_size]
        told = _shifted(progress, by=done + start, total=len(unique))
        waiting = partial(told, f"wait to embed {role}", 0, 0)
        with nullcontext() if turn is None else turn(waiting):
            if turn is not None:
                found, rows[chosen] = known([unique[row] for row in chosen])
                chosen = _unknown(chosen, found)
                if found.any():
                    told = _shifted(told, by=int(found.sum()), total=0)
                    told(f"embed {role}", 0, 0)
            if chosen:
                chunk = [unique[row] for row in chosen]
                rows[chosen] = keep(chunk, embedded(embedder, chunk, role, told))
    return rows if len(unique) == len(texts) else rows[[row_of[text] for text in texts]]


def _unknown(chosen: list[int], found: Bool[Tensor, " texts"]) -> list[int]:
    return [row for row, is_known in zip(chosen, found.tolist(), strict=True) if not is_known]


def _shifted(progress: Progress, *, by: int, total: int) -> Progress:
    """Progress within a chunk, told as progress of the whole call."""
    return lambda stage, done, _: progress(stage, by + done, total)
