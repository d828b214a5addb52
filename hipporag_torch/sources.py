"""Documents cut into passages, and which source holds which passage where."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hipporag_torch.errors import BackendError, InputError
from hipporag_torch.protocols import Chunker
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Chunk, Document, Passage, Source


@dataclass(frozen=True)
class Piece:
    """A passage as one document of a source holds it; its position in the source is not known yet."""

    passage_id: str
    text: str
    source: Source


def documents_of(documents: Iterable[Document]) -> list[Document]:
    """`documents` as a list. Raises `InputError` for anything else."""
    if isinstance(documents, Document | str):
        raise InputError(f"documents must be a list, got one {type(documents).__name__}")
    documents = list(documents)
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(
                f"expected a Document, got {type(document).__name__}: {document!r:.80}; Document(text=…)"
            )
    return documents


def pieces_of(documents: Sequence[Document], chunker: Chunker, text: TextOptions) -> list[Piece]:
    """The passages of each document, in order. A text that a document holds twice counts where it is first.

    Raises `BackendError` if a chunk is not as `Chunk` says.
    """
    pieces: list[Piece] = []
    for document in documents:
        source_id = document.source_id or text.passage_id(document.text)
        chunks = chunker.chunk(document)
        if not chunks:
            raise BackendError(
                f"the chunker gave no chunk for the document {source_id}; expected at least one"
            )
        of_document: dict[str, Piece] = {}
        for chunk in chunks:
            checked = _checked(chunk, document, source_id)
            key = text.passage_id(checked.text)
            source = Source(source_id, 0, checked.metadata, chunk.start, chunk.end)
            of_document.setdefault(key, Piece(key, checked.text, source))
        pieces += of_document.values()
    return pieces


def _checked(chunk: Chunk, document: Document, source_id: str) -> Document:
    """The chunk's text with the metadata of both; `Document` checks that they are what they must be."""
    if not 0 <= chunk.start <= chunk.end <= len(document.text):
        raise BackendError(
            f"the chunker gave a chunk from {chunk.start} to {chunk.end} of the document {source_id}, which "
            f"has {len(document.text)} characters; expected 0 <= start <= end <= {len(document.text)}"
        )
    if chunk.text == document.text and not chunk.metadata:
        return document
    try:
        return Document(chunk.text, source_id, {**document.metadata, **chunk.metadata})
    except InputError as error:
        raise BackendError(
            f"the chunker gave a chunk of the document {source_id} that cannot be a passage: {error}"
        ) from error


def merged(passages: Iterable[Passage], pieces: Iterable[Piece]) -> dict[str, Passage]:
    """All passages, old and new, by id, with the sources that now hold them.

    A passage that its source holds already keeps its position, and its metadata and offsets are brought up
    to date; another takes the next position of the source. What does not change stays the same object.
    """
    by_id = {passage.id: passage for passage in passages}
    next_position: Counter[str] = Counter()
    for passage in by_id.values():
        for source in passage.sources:
            next_position[source.source_id] = max(next_position[source.source_id], source.position + 1)
    for piece in pieces:
        passage = by_id.get(piece.passage_id) or Passage(piece.passage_id, piece.text)
        sources = {source.source_id: source for source in passage.sources}
        source_id = piece.source.source_id
        if source_id in sources:
            position = sources[source_id].position
        else:
            position = next_position[source_id]
            next_position[source_id] += 1
        source = replace(piece.source, position=position)
        if sources.get(source_id) == source:
            continue
        sources[source_id] = source
        by_id[passage.id] = replace(passage, sources=tuple(sources[s] for s in sorted(sources)))
    return by_id


def without(passages: Iterable[Passage], gone: Container[str]) -> list[Passage]:
    """The passages that a source still holds when those named in `gone` hold none.

    What does not change stays the same object.
    """
    left: list[Passage] = []
    for passage in passages:
        sources = tuple(source for source in passage.sources if source.source_id not in gone)
        if len(sources) == len(passage.sources):
            left.append(passage)
        elif sources:
            left.append(replace(passage, sources=sources))
    return left


def as_before(old: Iterable[Passage], by_id: Mapping[str, Passage]) -> dict[str, Passage]:
    """`by_id`, in which each passage that equals an old one is the same object."""
    before = {passage.id: passage for passage in old}
    return {key: before[key] if before.get(key) == passage else passage for key, passage in by_id.items()}


def held_by(passages: Iterable[Passage], source_id: str) -> list[str]:
    """The ids of the passages that a source holds."""
    return [passage.id for passage in passages if any(s.source_id == source_id for s in passage.sources)]


def passages_by_source(pieces: Iterable[Piece]) -> Mapping[str, set[str]]:
    """For each source that the pieces name, in their order, the ids of its passages."""
    by_source: dict[str, set[str]] = {}
    for piece in pieces:
        by_source.setdefault(piece.source.source_id, set()).add(piece.passage_id)
    return by_source
