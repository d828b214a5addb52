"""Which passages a change is about."""

from collections.abc import Iterable
from dataclasses import replace

from hipporag_torch.errors import InputError
from hipporag_torch.index import Index
from hipporag_torch.sources import Piece, documents_of, held_by
from hipporag_torch.types import Document, require_text


def to_extract(index: Index, pieces: Iterable[Piece]) -> list[str]:
    """The passages handed in that are new, or that failed in a way that can heal; ids, ascending."""
    handed = {piece.passage_id for piece in pieces}
    return sorted(key for key in handed if key not in index.passage_row or index.failed.get(key) is False)


def failed_ids(index: Index, *, permanent: bool) -> list[str]:
    """The passages whose extraction failed; those that cannot heal only with `permanent`."""
    return [key for key, is_permanent in index.failed.items() if permanent or not is_permanent]


def produced_by(index: Index, producer: str | None) -> list[str]:
    """The passages whose extraction has this producer, or all; ids, ascending."""
    if producer is None:
        return [passage.id for passage in index.passages]
    found = [extraction.producer for extraction in index.extractions]
    if producer not in found:
        known = ", ".join(repr(name) for name in sorted(set(found))) or "none, it is empty"
        raise InputError(f"no extraction was made by {producer!r}; the index has those of {known}")
    return [p.id for p, its in zip(index.passages, found, strict=True) if its == producer]


def replacing(index: Index, source_id: str, documents: Iterable[Document]) -> list[Document]:
    """`documents` of `source_id`, which the index must have."""
    require_text(source_id, "source_id")
    documents = documents_of(documents)
    if not held_by(index.passages, source_id):
        raise InputError(f"the index has no source {source_id!r:.80} to update; add its documents instead")
    if not documents:
        raise InputError(
            f"there are no documents to update the source {source_id!r:.80} with; remove it instead"
        )
    for document in documents:
        if document.source_id not in (None, source_id):
            raise InputError(
                f"a document of the source {document.source_id!r:.80} cannot update {source_id!r:.80}; "
                "leave its source_id out, or update its own source"
            )
    return [replace(document, source_id=source_id) for document in documents]
