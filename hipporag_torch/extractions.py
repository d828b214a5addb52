"""The extractions of an index, one for each passage: those on the disk are read when one is asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import overload

from jaxtyping import Int64
from torch import Tensor

from hipporag_torch.types import Extraction


def _nothing() -> Mapping[int, Extraction]:
    return {}


# Not Sequence[Extraction]: a run-time type checker would look at an element, and so read all of them.
class Extractions(Sequence):
    """Row i holds the extraction of passage i.

    count: how many rows there are.
    fresh: the extractions that are in no store yet, by row.
    stored: gives the extractions of all other rows, by row; called once, at the first access to one of
        them. Changing an index never is such an access.
    """

    def __init__(
        self,
        *,
        count: int,
        fresh: Mapping[int, Extraction],
        stored: Callable[[], Mapping[int, Extraction]] = _nothing,
    ) -> None:
        self._count = count
        self._fresh = dict(fresh)
        self._stored = stored
        self._read: Mapping[int, Extraction] | None = None

    @staticmethod
    def of(extractions: Iterable[Extraction]) -> "Extractions":
        """All fresh."""
        fresh = dict(enumerate(extractions))
        return Extractions(count=len(fresh), fresh=fresh)

    @property
    def fresh(self) -> Mapping[int, Extraction]:
        """The extractions that are in no store yet, by row."""
        return self._fresh

    def changed(
        self, new_idx: Int64[Tensor, " rows"], *, count: int, replaced: Mapping[int, Extraction]
    ) -> "Extractions":
        """Those of the next generation, which has `count` rows; reads nothing.

        Row i has become `new_idx[i]`, or has gone if that is -1; `replaced` holds the new extractions of
        rows that are new or extracted again, by their new row.
        """
        rows = new_idx.tolist()
        fresh = {rows[old]: extraction for old, extraction in self._fresh.items() if rows[old] >= 0}
        if len(self._fresh) == self._count:
            return Extractions(count=count, fresh=fresh | dict(replaced))

        def stored() -> Mapping[int, Extraction]:
            return {rows[old]: extraction for old, extraction in self._rest().items() if rows[old] >= 0}

        return Extractions(count=count, fresh=fresh | dict(replaced), stored=stored)

    def _rest(self) -> Mapping[int, Extraction]:
        if self._read is None:
            self._read = self._stored()
        return self._read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> Extraction: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[Extraction, ...]: ...
    def __getitem__(self, row: int | slice) -> Extraction | tuple[Extraction, ...]:
        rows = range(self._count)[row]
        return self._at(rows) if isinstance(rows, int) else tuple(self._at(one) for one in rows)

    def __iter__(self) -> Iterator[Extraction]:
        return map(self._at, range(self._count))

    def _at(self, row: int) -> Extraction:
        extraction = self._fresh.get(row)
        return self._rest()[row] if extraction is None else extraction

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Extractions({self._count} rows, {len(self._fresh)} fresh)"
