"""An index as Parquet files, for pandas, Qdrant, Milvus, Chroma, LanceDB and DuckDB."""

from importlib.util import find_spec
from pathlib import Path

from hipporag_torch.errors import ConfigError
from hipporag_torch.export.files import Exported, drafts
from hipporag_torch.index import Index


def export_parquet(index: Index, folder: str | Path, *, overwrite: bool = False) -> Exported:
    """Write the tables of `index` into `folder`, which is made if need be, one file each.

    passages: id, text, status and producer of its extraction, vector.
    sources: passage_id, source_id, position, start, end, metadata (JSON).
    extractions: passage_id, status, reason, reply, producer, permanent, dropped (JSON), entities,
        triples (structs of subject, predicate, object), sentences (structs of text, names), all as the
        extractor gave them.
    phrases: text, passages (ids of those that state it), vector.
    facts: subject, predicate, object of a triple, else null; sentence, or null for a triple; phrases (the
        subject and the object, or the distinct names of the sentence), statements (how often it is stated),
        vector.
    statements: passage_id, fact (row in facts), subject, predicate, object, sentence as in facts.
    edges: source, target (`phrase:<phrase>`, `passage:<id>`), kinds (fact, synonym, membership, mention),
        weight, statements that have both ends, cosine of a synonym pair or null. Each undirected edge once.

    Rows are in the order of the index. A vector is a list of `dim` float32, of unit length or zero; an
    embedder without numbers gives no such column. The schema's metadata `hipporag_torch` is JSON: the
    embedder's identity, the text and the graph options. Files are written in row groups, so memory stays
    bounded, and take their places together once all are whole.

    Raises `ConfigError` where pyarrow is not installed, `InputError` if a file exists and `overwrite` is
    not set.
    """
    _require_pyarrow()
    from hipporag_torch.export.tables import tables_of, write_table

    tables = tables_of(index)
    paths = tuple(Path(folder) / f"{table.name}.parquet" for table in tables)
    with drafts(paths, overwrite=overwrite) as written:
        for table, draft in zip(tables, written, strict=True):
            write_table(table, draft)
    return Exported(paths)


def _require_pyarrow() -> None:
    try:
        found = find_spec("pyarrow") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise ConfigError(
            "writing Parquet needs pyarrow, which is not installed; pip install 'hipporag-torch[parquet]', "
            "or export GraphML or HippoRAG's JSON instead"
        )
