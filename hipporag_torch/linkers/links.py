"""What a linker says of a batch of questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hipporag_torch.chat import Usage
from hipporag_torch.index import Index
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.protocols import Embedder


@dataclass(frozen=True, eq=False)
class Links:
    """The phrases that each question names.

    `phrase_idx`: question → distinct rows of the index's phrases, ascending, on the index's device.
    `errors`, per question: why a model could not say, in which case nothing is linked; else empty. A question
    that names nothing, or nothing that the index knows, is no error. `usage`, per question: what it cost.
    `dropped`, per question, or nothing if no model is asked: the unusable entries of a reply, by kind.
    """

    phrase_idx: Ragged
    errors: tuple[str, ...]
    usage: tuple[Usage, ...]
    dropped: tuple[Mapping[str, int], ...] = ()

    @staticmethod
    def of(phrase_idx: Ragged) -> "Links":
        """Those of a linker that asks no model."""
        count = phrase_idx.num_rows
        return Links(phrase_idx, ("",) * count, (Usage(),) * count)


class Linker(Protocol):
    """Questions → the phrases of an index that they name."""

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        """A row for each question, in order; `embedder` is the one that made the vectors of `index`."""
        ...
