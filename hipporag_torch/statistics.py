"""Counting what a memory holds, and what stands in its directory."""

from collections import Counter
from pathlib import Path

from hipporag_torch.index import Index
from hipporag_torch.maintenance import Counts, DiskStats, IndexStats, KeptEmbedder
from hipporag_torch.reports import FailedPassage
from hipporag_torch.store import records
from hipporag_torch.store.database import opened, snapshot
from hipporag_torch.store.embedders import NOT_YET, read_embedders, read_vector_rows
from hipporag_torch.store.locks import interrupted_writer
from hipporag_torch.store.snapshot import Snapshot
from hipporag_torch.store.store import Store


def counts_of(index: Index) -> Counts:
    return Counts(
        passages=len(index.passages),
        sources=len({source.source_id for passage in index.passages for source in passage.sources}),
        phrases=len(index.phrases),
        facts=len(index.facts),
        statements=len(index.statements),
        synonyms=len(index.synonyms),
        edges=index.graph.num_edges,
    )


def index_stats(index: Index, disk: DiskStats | None) -> IndexStats:
    """The state of an index; reads all of its extractions."""
    failed = tuple(
        FailedPassage(
            passage.id,
            tuple(source.source_id for source in passage.sources),
            extraction.reason,
            extraction.reply,
            extraction.permanent,
        )
        for passage, extraction in zip(index.passages, index.extractions, strict=True)
        if extraction.status == "failed"
    )
    stating = set(index.statements.passage_idx.tolist())
    return IndexStats(
        counts=counts_of(index),
        embedder=index.embedder,
        text=index.text,
        graph_options=index.graph_options,
        producers=dict(sorted(Counter(extraction.producer for extraction in index.extractions).items())),
        failed=failed,
        without_facts=len(index.passages) - len(stating) - len(failed),
        disk=disk,
    )


def disk_stats(store: Store, held: Snapshot) -> DiskStats:
    """What stands in the directory of `store`, whose generation `held` is the one that is read."""
    with opened(store.directory, write=not store.read_only) as connection, snapshot(connection):
        (staged,) = connection.execute("SELECT count(*) FROM staged_extractions").fetchone()
        last = connection.execute("SELECT action FROM generations ORDER BY number DESC LIMIT 1").fetchone()
        removed = {
            table: connection.execute(
                f"SELECT count(*) FROM {table} WHERE died IS NOT NULL"  # noqa: S608
            ).fetchone()[0]
            for table in records.COLUMNS
        }
        spare = sum(
            len(row.file.unnamed(held.vector_rows[kind], row.finished))
            for kind, row in read_vector_rows(store.directory, connection, held.embedder).items()
        )
        embedders = tuple(
            KeptEmbedder(row.identity, row.generation, row.dtype, row.main)
            for row in read_embedders(connection)
            if row.generation != NOT_YET
        )
    return DiskStats(
        path=str(store.directory),
        generation=held.generation,
        last_action=last[0],
        bytes=directory_bytes(store.directory),
        embedders=embedders,
        interrupted=interrupted_writer(store.directory),
        staged_extractions=staged,
        spare_vectors=spare,
        removed={table: count for table, count in removed.items() if count},
    )


def directory_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
