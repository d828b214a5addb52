"""HippoRAG's extraction file, written and read: `{"docs": [{idx, passage, extracted_entities, …}]}`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hipporag_torch.export.files import Exported, drafts
from hipporag_torch.extractors.stored import docs_by_passage
from hipporag_torch.index import Index
from hipporag_torch.types import Document, Extraction, Passage, require_text


def export_upstream(index: Index, path: str | Path, *, overwrite: bool = False) -> Exported:
    """Write the extractions of `index` to `path`, in the order of its passages.

    Each document has its passage's id (`idx`) and text (`passage`), `extracted_entities` and
    `extracted_triples`, as the extractor gave them, and, where there are any, `extracted_sentences`: lists
    of a text and of the names in it, which HippoRAG does not know. `avg_ent_chars` and `avg_ent_words` are
    those of all entities, 0 if there are none. `StoredExtractor` reads the file. The format knows no
    failures: failed extractions are left out, and counted in `left_out`; truncated ones look complete.

    Raises `InputError` if `path` exists and `overwrite` is not set, or if it cannot be a file.
    """
    docs = (
        upstream_doc(passage, extraction)
        for passage, extraction in zip(index.passages, index.extractions, strict=True)
        if extraction.status != "failed"
    )
    num_docs = write_docs(docs, path, overwrite=overwrite)
    return Exported((Path(path),), left_out=len(index.passages) - num_docs)


def write_docs(docs: Iterable[Mapping[str, Any]], path: str | Path, *, overwrite: bool = False) -> int:
    """Write documents, as `upstream_doc` makes them, to `path` in their order; how many there were.

    The file appears whole or not at all. Raises as `export_upstream`.
    """
    num_docs = num_entities = num_chars = num_words = 0
    with drafts([Path(path)], overwrite=overwrite) as (draft,), draft.open("w", newline="\n") as file:
        file.write('{"docs": [')
        for doc in docs:
            file.write((",\n" if num_docs else "\n") + json.dumps(doc))
            entities = [entity for entity in doc["extracted_entities"] if isinstance(entity, str)]
            num_docs += 1
            num_entities += len(entities)
            num_chars += sum(map(len, entities))
            num_words += sum(len(entity.split()) for entity in entities)
        averages = {
            "avg_ent_chars": round(num_chars / max(1, num_entities), 4),
            "avg_ent_words": round(num_words / max(1, num_entities), 4),
        }
        file.write("\n], " + json.dumps(averages)[1:] + "\n")
    return num_docs


def upstream_doc(passage: Passage, extraction: Extraction) -> dict[str, Any]:
    """One document of the file."""
    doc: dict[str, Any] = {
        "idx": passage.id,
        "passage": passage.text,
        "extracted_entities": list(extraction.entities),
        "extracted_triples": [list(triple.parts) for triple in extraction.triples],
    }
    if extraction.sentences:
        doc["extracted_sentences"] = [[s.text, list(names)] for s, names in extraction.sentences]
    return doc


def read_upstream(path: str | Path) -> list[Document]:
    """The passages of an extraction file, in its order, as documents without a source.

    Index them with `StoredExtractor(path=path)`. A passage that stands twice becomes one document.

    Raises `ConfigError` if the file is missing, `InputError` if it is not of this shape or has a passage
    that is blank or not valid Unicode.
    """
    file = Path(path)
    return [
        Document(text=require_text(text, f"passage {number} of {file}"))
        for number, text in enumerate(docs_by_passage(file), start=1)
    ]
