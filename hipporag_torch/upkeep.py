"""Looking after a memory in a directory: check, repair, compact, reembed."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hipporag_torch.embedders.absent import AbsentEmbedder
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.errors import CompatibilityError, HippoRAGError, StoreError
from hipporag_torch.extractors.absent import AbsentExtractor
from hipporag_torch.index import Extractions, Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.keepers import OnDisk
from hipporag_torch.llms.cache import ReplyCaches
from hipporag_torch.maintenance import CheckReport, CompactReport, ReembedReport, RepairReport
from hipporag_torch.protocols import Embedder, Progress, no_progress
from hipporag_torch.staging import StagedEmbedder
from hipporag_torch.statistics import directory_bytes
from hipporag_torch.store import compact as compaction
from hipporag_torch.store import records
from hipporag_torch.store.check import (
    ADD_AGAIN,
    RESTORE,
    DamagedRow,
    check_all,
    check_records,
    damaged_rows,
    damaged_vectors,
)
from hipporag_torch.store.database import snapshot
from hipporag_torch.store.embedders import read_embedders
from hipporag_torch.store.session import Session
from hipporag_torch.store.snapshot import Snapshot, current_generation
from hipporag_torch.store.store import Store, clean
from hipporag_torch.store.vectors import VectorType
from hipporag_torch.types import Extraction

# A reader that may not lock may meet a commit; it looks again so often.
_ATTEMPTS = 3


def check(store: Store, progress: Progress = no_progress, *, quick: bool = False) -> CheckReport:
    """Verify everything that live data depends on. `quick` leaves out the search for synonyms.

    Writers wait meanwhile; a read-only check, which cannot make them wait, is done again if one commits.
    """
    for attempt in range(_ATTEMPTS):
        with store.inspecting() as connection:
            generation = current_generation(connection)
            findings = check_all(store.directory, connection, quick=quick, progress=progress)
            counted = connection.execute(
                f"SELECT {', '.join(records.COLUMNS)} FROM generations WHERE number = ?",  # noqa: S608
                (generation,),
            ).fetchone()
            if not findings or current_generation(connection) == generation or attempt == _ATTEMPTS - 1:
                return CheckReport(dict(zip(records.COLUMNS, counted, strict=True)), tuple(findings))
    raise AssertionError("the last attempt returns")


def reembed(
    keeper: OnDisk, embedder: Embedder, *, vectors: VectorType | None, settings: str, progress: Progress
) -> ReembedReport:
    """Add the vectors of `embedder` for all that the index holds, and make it the main one."""
    start = time.perf_counter()
    with keeper.store.rebuild(
        "reembed", embedder=embedder.identity, settings=settings, dtype=vectors
    ) as session:
        staged = StagedEmbedder(embedder=embedder, session=session)
        index = _rebuilt(session.snapshot.index, staged, progress)
        session.join(index)
        keeper.adopt(session.snapshot)
    texts = {"passage": len(index.passages), "phrase": len(index.phrases), "fact": len(index.facts)}
    return ReembedReport(embedder.identity, texts, staged.made, time.perf_counter() - start)


def compact(
    keeper: OnDisk, cache: EmbeddingCache | None, progress: Progress, replies: ReplyCaches | None = None
) -> CompactReport:
    """Drop what deletions left, from the directory and from the caches, whoever else may use those."""
    store = keeper.store
    before = directory_bytes(store.directory)
    not_erased: list[str] = []
    # The snapshot that this process holds may be an older one, and is held again if this fails.
    keeper.refresh()
    with store.write("compact", keeper.snapshot) as session:
        connection = session.connection
        keeper.adopt(session.snapshot)
        clean(store.directory, connection)
        compaction.require_no_readers(store.directory, connection, store.wait_seconds)
        texts = compaction.removed_texts(connection, session.snapshot.index.text)
        dropped = {}
        if cache is not None:
            try:
                dropped["cached_vectors"] = sum(
                    cache.drop(row.identity, dict(row.identity.instructions).get(role, ""), removed)
                    for row in read_embedders(connection)
                    for role, removed in texts.items()
                )
            except HippoRAGError as error:
                not_erased.append(str(error))
        if replies is not None and any(texts.values()):
            try:
                dropped["cached_replies"] = replies.drop(texts["passage"])
            except HippoRAGError as error:
                not_erased.append(str(error))
        dropped |= compaction.compact(store.directory, connection, progress)
        compaction.vacuum(connection)
        with snapshot(connection):
            session.snapshot = session.reread()
        keeper.adopt(session.snapshot)
    after = directory_bytes(store.directory)
    return CompactReport(before, after, {k: n for k, n in dropped.items() if n}, tuple(not_erased))


def repair(store: Store, embedder: Embedder | None = None, progress: Progress = no_progress) -> RepairReport:
    """Build again what is derived, embed again what is lost, quarantine extractions that are damaged.

    Works on an index that cannot be opened. An embedder is needed only where vectors are lost, and must
    be the index's main one.
    """
    before = check(store, progress).findings
    if not before:
        return RepairReport((), ())
    main = store.identity().main.identity
    if embedder is None:
        embedder = AbsentEmbedder(identity=main)
    if embedder.identity != main:
        raise CompatibilityError(
            f"{store.directory} is repaired with its main embedder {main}, {embedder.identity} was stated; "
            "state that one or none, and reembed with the other afterwards"
        )
    if all(finding.way_out == ADD_AGAIN for finding in before):
        return RepairReport((), before)
    with store.rebuild("repair", embedder=main) as session:
        session.connection.execute("REINDEX")
        # A commit would count and seal what is lost or damaged as if it were whole.
        if any(f.way_out == RESTORE for f in check_records(session.connection)):
            return RepairReport((), before)
        damaged = damaged_rows(session.connection)
        session.snapshot = _without_rows(session.snapshot, damaged)
        index, quarantined = _without_damage(session, damaged)
        _distrust_vectors(session)
        staged = StagedEmbedder(embedder=embedder, session=session)
        buried = [(row.table, row.id) for row in damaged if row.table not in ("passages", "sources")]
        session.commit(_rebuilt(index, staged, progress), "repair", buried)
        session.snapshot.close()
    after = check(store, progress).findings
    mended = tuple(finding for finding in before if finding not in after)
    return RepairReport(mended, after, quarantined, staged.made)


def _rebuilt(index: Index, embedder: Embedder, progress: Progress) -> Index:
    indexer = Indexer(
        embedder=embedder, extractor=AbsentExtractor(), text=index.text, graph=index.graph_options
    )
    return indexer.rebuild(index, progress=progress)


def _without_rows(snapshot: Snapshot, damaged: Sequence[DamagedRow]) -> Snapshot:
    """The bare snapshot without its damaged phrases and facts, so that they are new when they come back."""
    bad = {(row.table, row.id) for row in damaged}
    index, ids, vector_rows = snapshot.index, dict(snapshot.ids), dict(snapshot.vector_rows)
    left = {
        table: [row for row, number in enumerate(ids[table].tolist()) if (table, number) not in bad]
        for table in ("phrases", "facts")
    }
    for table in left:
        ids[table] = ids[table][left[table]]
    vector_rows["phrase"] = vector_rows["phrase"][left["phrases"]]
    vector_rows["fact"] = vector_rows["fact"][left["facts"]]
    index = replace(
        index,
        phrases=tuple(index.phrases[row] for row in left["phrases"]),
        facts=tuple(index.facts[row] for row in left["facts"]),
    )
    return replace(snapshot, index=index, ids=ids, vector_rows=vector_rows)


def _without_damage(session: Session, damaged: Sequence[DamagedRow]) -> tuple[Index, tuple[str, ...]]:
    """The bare index with failed extractions in the place of damaged or lost ones, and whose those are."""
    index = session.snapshot.index
    bad = {row.id for row in damaged if row.table == "extractions"}
    rows = session.connection.execute(
        "SELECT id, passage, content FROM extractions WHERE died IS NULL ORDER BY id"
    )
    kept: dict[int, list[str]] = {}
    for number, passage, content in rows:
        if number not in bad:
            kept.setdefault(passage, []).append(content)
    lost = Extraction(status="failed", reason="the extraction was damaged on the disk", producer="repair")
    fresh: dict[int, Extraction] = {}
    stored: dict[int, Extraction] = {}
    for row, number in enumerate(session.snapshot.ids["passages"].tolist()):
        contents = kept.get(number, [])
        if len(contents) == 1:
            stored[row] = records.extraction_from_json(contents[0])
        else:
            fresh[row] = lost
    extractions = Extractions(count=len(index.passages), fresh=fresh, stored=lambda: stored)
    quarantined = tuple(index.passages[row].id for row in fresh)
    return _replaced(index, extractions), quarantined


def _replaced(index: Index, extractions: Extractions) -> Index:
    failed = {
        passage.id: extraction.permanent
        for passage, extraction in zip(index.passages, extractions, strict=True)
        if extraction.status == "failed"
    }
    return replace(index, extractions=extractions, failed=failed)


def _distrust_vectors(session: Session) -> None:
    for kind, segments in damaged_vectors(session.directory, session.connection, session.embedder).items():
        try:
            session.require_file(kind)
            session.distrust(kind, segments, file=False)
        except StoreError:
            session.distrust(kind, segments, file=True)
