"""What a memory holds of a folder."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hipporag_torch.sources import Piece
from hipporag_torch.types import Passage, Source

Held = Mapping[str, Source]
"""By passage id, how one source holds it."""


@dataclass(frozen=True)
class Holdings:
    """by_path: for each path of the folder what its source holds. own: those of these paths whose sources say
    themselves that they are of this folder. holders: by passage id, how many sources hold it.
    """

    by_path: Mapping[str, Held]
    own: frozenset[str]
    holders: Counter[str]


def holdings(passages: Iterable[Passage], root_id: str) -> Holdings:
    """What the sources of a folder hold."""
    prefix = f"{root_id}/"
    by_path: dict[str, dict[str, Source]] = {}
    own: set[str] = set()
    holders: Counter[str] = Counter()
    for passage in passages:
        holders[passage.id] = len(passage.sources)
        for source in passage.sources:
            if source.source_id.startswith(prefix):
                path = source.source_id.removeprefix(prefix)
                by_path.setdefault(path, {})[passage.id] = source
                if source.metadata.get("root") == root_id:
                    own.add(path)
    return Holdings(by_path, frozenset(own), holders)


def given(pieces: Sequence[Piece]) -> Held:
    """What a source would hold whose only document is cut into `pieces`."""
    return {piece.passage_id: replace(piece.source, position=n) for n, piece in enumerate(pieces)}


def same(held: Held, given: Held) -> bool:
    """Whether both are alike, but for when the file was changed."""
    return held.keys() == given.keys() and all(_timeless(held[key]) == _timeless(given[key]) for key in held)


def _timeless(source: Source) -> Source:
    return replace(source, metadata={k: v for k, v in source.metadata.items() if k != "mtime"})
