"""Check finds, repair mends, compact erases, reembed keeps what was paid for."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.errors import CompatibilityError, ConfigError, ExtractionError, LockedError, StoreError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.store.store import Store
from hipporag_torch.store.vectors import text_key
from hipporag_torch.types import Document, Extraction
from hipporag_torch.upkeep import check, repair

from .store.conftest import (
    ADA,
    BERGEN,
    BREAD,
    DOCUMENTS,
    TOVE,
    CountingEmbedder,
    CountingExtractor,
    Open,
    files_of,
    opener,
    state_of,
    texts_of,
)

VECTORS = "vectors/*-phrase-*.rows"


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with opener(tmp_path) as open_one:
        yield open_one


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four passages, and a fifth that was removed."""
    folder = tmp_path_factory.mktemp("template")
    with opener(folder) as open_one:
        memory = open_one()
        memory.add([*DOCUMENTS, "Ida Vale left Oslo."])
        memory.remove(texts=["Ida Vale left Oslo."])
    return folder / "index"


@pytest.fixture
def index(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "index")


def state(index: Path) -> dict[str, object]:
    with HippoRAG.open(index) as memory:
        return state_of(memory.index)


def alter(index: Path, *statements: str) -> None:
    with closing(sqlite3.connect(index / "records.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


def damage(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def one(index: Path, pattern: str) -> Path:
    (path,) = index.glob(pattern)
    return path


# ---- repair


def test_an_index_that_is_whole_is_left_as_it_is(index: Path) -> None:
    before = files_of(index)
    report = repair(Store(index))
    assert (report.mended, report.unmended, report.quarantined, report.embedded) == ((), (), (), 0)
    assert files_of(index) == before


@pytest.mark.parametrize("how", ["missing", "flipped", "cut"])
def test_arrays_are_built_again_from_the_records(index: Path, how: str) -> None:
    before, path = state(index), one(index, "arrays/*")
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        damage(path, path.stat().st_size - 3)
    report = repair(Store(index))
    assert {finding.part for finding in report.mended} == {"arrays"}
    assert (report.unmended, report.quarantined, report.embedded) == ((), (), 0)
    assert check(Store(index)).findings == ()
    assert state(index) == before


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        (VECTORS, "missing"),
        (VECTORS, "flipped"),
        (VECTORS, "cut"),
        (VECTORS, "other"),
        ("*/*-phrase-*.keys", "missing"),
    ],
)
def test_vectors_are_embedded_again_by_their_embedder_alone(index: Path, pattern: str, how: str) -> None:
    before, path = state(index), one(index, pattern)
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif how == "other":
        shutil.copy(one(index, "vectors/*-fact-*.rows"), path)
    else:
        damage(path, 4096)
    with pytest.raises(ConfigError, match=r"texts have to be embedded, but no embedder was stated.*hashing"):
        repair(Store(index))
    embedder = CountingEmbedder()
    report = repair(Store(index), embedder)
    assert (report.unmended, report.quarantined) == ((), ())
    assert 0 < report.embedded == len(embedder.asked)
    assert set(embedder.asked) <= set(before["phrases"])  # pyright: ignore[reportArgumentType]
    assert check(Store(index)).findings == ()
    assert state(index) == before


def test_another_embedder_does_not_repair(index: Path) -> None:
    one(index, VECTORS).unlink()
    with pytest.raises(CompatibilityError, match=r"main embedder .*dim=32.*dim=8.* was stated"):
        repair(Store(index), CountingEmbedder(dim=8))
    assert len(Store(index).identity().embedders) == 1


@pytest.mark.parametrize("table", ["phrases", "facts"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {table} WHERE {first}",
        "UPDATE {table} SET digest = x'00' WHERE {first}",
        "UPDATE {table} SET {column} = {column} || 'x' WHERE {first}",
        "UPDATE {table} SET {column} = CAST({column} || x'ff' AS TEXT) WHERE {first}",
        "UPDATE {table} SET born = 99 WHERE {first}",
        "UPDATE {table} SET died = 1 WHERE {first}",
    ],
)
def test_phrases_and_facts_are_those_of_the_extractions_again(index: Path, table: str, change: str) -> None:
    before = state(index)
    first = f"id = (SELECT min(id) FROM {table} WHERE died IS NULL)"
    column = {"phrases": "text", "facts": "predicate"}[table]
    alter(index, change.format(table=table, first=first, column=column))
    report = repair(Store(index), CountingEmbedder())
    assert {finding.part for finding in report.mended} >= {table}
    assert (report.unmended, report.quarantined) == ((), ())
    assert check(Store(index)).findings == ()
    assert state(index) == before


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM extractions WHERE {one}",
        "UPDATE extractions SET content = '{{}}' WHERE {one}",
        "UPDATE extractions SET content = '{{\"trip' WHERE {one}",
        "UPDATE extractions SET content = CAST(content || x'ff' AS TEXT) WHERE {one}",
        "UPDATE extractions SET passage = 99 WHERE {one}",
        "UPDATE extractions SET passage = passage - 1 WHERE {one}",
        "UPDATE extractions SET born = 99 WHERE {one}",
        "UPDATE extractions SET died = 1 WHERE {one}",
    ],
)
def test_a_damaged_extraction_is_quarantined_and_extracted_again(index: Path, change: str) -> None:
    before = state(index)
    (passage_id,) = [p.id for p in before["passages"] if p.text == TOVE]  # pyright: ignore[reportGeneralTypeIssues]
    alter(index, change.format(one=f"passage = (SELECT id FROM passages WHERE text = '{TOVE}')"))
    report = repair(Store(index))
    assert (report.unmended, report.quarantined, report.embedded) == ((), (passage_id,), 0)
    assert check(Store(index)).findings == ()
    extractor = CountingExtractor()
    with HippoRAG.open(index, embedder=CountingEmbedder(), extractor=extractor) as memory:
        (failed,) = memory.stats().failed
        assert (failed.passage_id, failed.permanent) == (passage_id, False)
        assert "damaged" in failed.reason
        assert memory.retry_failed().failed == ()
        assert extractor.asked == [TOVE]
        assert memory.check().findings == ()
        assert state_of(memory.index) == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE passages SET text = text || '!' WHERE id = 1",
        "UPDATE passages SET digest = x'00' WHERE id = 1",
        'UPDATE sources SET metadata = \'{"title": "Eve"}\' WHERE id = 1',
        "UPDATE sources SET metadata = '{' WHERE id = 1",
        "DELETE FROM sources WHERE id = 1",
        "DELETE FROM passages WHERE id = 1",
        "UPDATE properties SET value = '{}' WHERE name = 'text'",
        "DELETE FROM seal",
        "UPDATE segments SET stop = stop + 1",
    ],
)
def test_what_nothing_else_tells_of_is_reported_and_left_as_it_is(index: Path, change: str) -> None:
    alter(index, change)
    before = files_of(index)
    report = repair(Store(index), CountingEmbedder())
    assert report.mended == ()
    assert report.unmended == check(Store(index)).findings != ()
    # The database counts its changes, and nothing else moves.
    after = files_of(index)
    assert {name for name in before if before[name] != after[name]} <= {"records.sqlite"}
    with closing(sqlite3.connect(index / "records.sqlite")) as connection:
        assert connection.execute("SELECT max(number) FROM generations").fetchone() == (2,)


def test_a_damaged_passage_is_left_while_what_is_derived_is_mended(index: Path) -> None:
    alter(index, "UPDATE passages SET text = text || '!' WHERE id = 1")
    one(index, "arrays/*").unlink()
    report = repair(Store(index), CountingEmbedder())
    assert {finding.part for finding in report.mended} == {"arrays"}
    assert {finding.part for finding in report.unmended} == {"passages"}
    with HippoRAG.open(index, embedder=CountingEmbedder(), extractor=CountingExtractor()) as memory:
        (text,) = {passage.text for passage in memory.index.passages} - {ADA, BERGEN, TOVE, BREAD}
        assert text.endswith("!")
        # The way out that the finding names.
        memory.remove(passage_ids=report.unmended[0].ids)
        memory.add([document for document in DOCUMENTS if document.text == text[:-1]])
        assert texts_of(memory) == sorted([ADA, BERGEN, TOVE, BREAD])
        assert memory.check().findings == ()


def test_an_index_of_the_database_that_lost_an_entry_is_made_again(index: Path) -> None:
    before = state(index)
    alter_schema = "PRAGMA writable_schema = ON"
    with closing(sqlite3.connect(index / "records.sqlite", isolation_level=None)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sources_of_passage'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(alter_schema)
    content = bytearray((index / "records.sqlite").read_bytes())
    # The page of an empty index.
    content[(root - 1) * size : (root - 1) * size + 8] = bytes([10, 0, 0, 0, 0, size >> 8, size & 255, 0])
    (index / "records.sqlite").write_bytes(content)
    assert check(Store(index)).findings != ()
    assert repair(Store(index)).unmended == ()
    assert state(index) == before


def test_the_facade_repairs_and_goes_on(index: Path) -> None:
    with HippoRAG.open(index, embedder=CountingEmbedder()) as memory:
        before = state_of(memory.index)
        alter(index, "UPDATE phrases SET digest = x'00' WHERE died IS NULL")
        assert memory.repair().unmended == ()
        assert memory.refresh() is False
        assert state_of(memory.index) == before


# ---- compact


REMOVED = "Zebulon Quist bequeathed Xylographica Manor."
SECRETS = ["Zebulon", "zebulon", "Quist", "bequeathed", "Xylographica", "xylographica manor", "Manor"]


def leaks(directory: Path, secrets: Sequence[bytes]) -> list[tuple[str, bytes]]:
    """Which of some bytes stand in which file, the writer's lock too."""
    return [
        (path.name, secret)
        for path in directory.rglob("*")
        if path.is_file()
        for secret in secrets
        if secret in path.read_bytes()
    ]


def secret_bytes(dim: int = 32) -> list[bytes]:
    texts = [REMOVED, "zebulon quist", "xylographica manor", "zebulon quist bequeathed xylographica manor"]
    rows = CountingEmbedder(dim=dim).embed(texts, "passage")
    told = [text.encode(encoding) for text in SECRETS for encoding in ("utf-8", "utf-16-le")]
    told += [text_key(text) for text in texts]
    return told + [row.numpy().tobytes() for row in rows] + [row.half().numpy().tobytes() for row in rows]


@pytest.mark.parametrize("vectors", ["float32", "float16"])
def test_no_byte_of_what_was_removed_stays(open_memory: Open, tmp_path: Path, vectors: str) -> None:
    cache = EmbeddingCache(tmp_path / "cache" / "embeddings.sqlite")
    extractor = CountingExtractor()
    memory = open_memory(
        embedder=CachedEmbedder(embedder=CountingEmbedder(), cache=cache),
        extractor=extractor,
        vectors=vectors,
    )
    secret = Document(REMOVED, "zebulon.md", {"author": "Quist", "n": ["Manor"]})
    memory.add([*DOCUMENTS, secret])
    memory.reembed(CachedEmbedder(embedder=CountingEmbedder(dim=16), cache=cache))
    memory.reembed(CachedEmbedder(embedder=CountingEmbedder(), cache=cache))
    # A raw reply that failed, and a paid-for extraction that nothing has published.
    extractor.failing = {REMOVED}
    memory.add([Document("Quist hates Zebulon Manor.", "zebulon.md")])
    extractor.producer, extractor.failing = "words-2", {ADA}
    with pytest.raises(ExtractionError):
        memory.reextract(on_error="fail")
    memory.update("b.md", [Document(TOVE, metadata={"n": "Zebulon"})])
    memory.update("b.md", [Document(TOVE)])
    secrets = secret_bytes() + secret_bytes(16)
    assert leaks(tmp_path, secrets)
    memory.remove(source_ids=["zebulon.md"])
    before, asked = state_of(memory.index), list(extractor.asked)
    report = memory.compact(cache=cache)
    assert leaks(tmp_path, secrets) == []
    assert report.not_erased == ()
    assert report.dropped["passages"] == 2
    assert report.dropped["cached_vectors"] > 0
    assert report.bytes_after < report.bytes_before
    assert state_of(memory.index) == state(tmp_path / "index") == before
    assert extractor.asked == asked
    assert memory.check().findings == ()


def test_an_update_leaves_nothing_of_the_old_text_either(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add([Document(REMOVED, "x.md")])
    memory.update("x.md", [Document(ADA)])
    memory.compact()
    assert leaks(tmp_path, secret_bytes()) == []


def test_a_cache_that_cannot_be_used_is_reported(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add([ADA])
    memory.remove(texts=[ADA])
    (tmp_path / "cache").write_bytes(b"no database, and long enough to be read as one" * 9)
    (told,) = memory.compact(cache=EmbeddingCache(tmp_path / "cache")).not_erased
    assert str(tmp_path / "cache") in told


def test_compacting_twice_and_compacting_nothing(index: Path, open_memory: Open) -> None:
    before = state(index)
    memory = open_memory()
    assert memory.compact().dropped == {
        "vectors": 4, "passages": 1, "sources": 1, "extractions": 1, "phrases": 2, "facts": 1
    }  # fmt: skip
    assert memory.compact().dropped == {}
    assert state(index) == before
    empty = open_memory("empty")
    assert empty.compact().dropped == {}
    empty.add([ADA])
    assert texts_of(empty) == [ADA]
    assert empty.check().findings == ()


def test_what_was_removed_and_compacted_can_come_back(index: Path, open_memory: Open) -> None:
    embedder, extractor = CountingEmbedder(), CountingExtractor()
    memory = open_memory(embedder=embedder, extractor=extractor)
    before = state_of(memory.index)
    memory.remove(texts=[TOVE])
    memory.compact()
    memory.add([DOCUMENTS[2]])
    assert extractor.asked == [TOVE]
    assert embedder.asked == [TOVE, "tove lund", "tove lund joined northwind press"]
    assert state_of(memory.index) == before
    assert memory.check().findings == ()


def test_what_was_removed_and_not_compacted_is_not_embedded_again(index: Path, open_memory: Open) -> None:
    embedder = CountingEmbedder()
    memory = open_memory(embedder=embedder)
    before = state_of(memory.index)
    memory.remove(texts=[TOVE])
    memory.add([DOCUMENTS[2]])
    assert embedder.asked == []
    assert state_of(memory.index) == before


def test_a_reader_of_an_older_generation_is_waited_for_and_named(index: Path, open_memory: Open) -> None:
    reader = open_memory(read_only=True)
    memory = open_memory(wait_seconds=0)
    memory.remove(texts=[ADA])
    before = files_of(index)
    with pytest.raises(
        LockedError, match=r"older generations .*generation 2 by process \d+.*refresh or close"
    ):
        memory.compact()
    assert files_of(index) == before
    assert sorted(e.producer for e in reader.index.extractions) == ["words-1"] * 4
    assert reader.refresh()
    memory.compact()
    assert leaks(index, [b"Ada"]) == []


def test_a_reader_of_the_last_generation_goes_on(index: Path, open_memory: Open) -> None:
    reader, memory = open_memory(read_only=True), open_memory(wait_seconds=0)
    before = reader.index.passages
    memory.compact()
    assert len(list(reader.index.extractions)) == 4
    assert torch.equal(reader.index.phrase_emb, memory.index.phrase_emb)
    assert reader.index.passages == before
    with pytest.raises(LockedError, match="generation 2"):
        memory.compact()
    assert reader.refresh()
    assert state_of(reader.index) == state_of(memory.index)
    memory.compact()


def test_a_handle_that_could_not_compact_still_holds_what_it_reads(index: Path, open_memory: Open) -> None:
    first, second = open_memory(wait_seconds=0), open_memory(wait_seconds=0)
    reader = open_memory(read_only=True)
    second.remove(texts=[ADA])
    with pytest.raises(LockedError, match="generation 2"):
        first.compact()
    reader.close()
    second.remove(texts=[BERGEN])
    with pytest.raises(LockedError, match="generation 3"):
        second.compact()
    assert len(list(first.index.extractions)) == 3
    first.refresh()
    second.compact()


def test_interrupted_extractions_outlive_compacting(index: Path, open_memory: Open) -> None:
    extractor = CountingExtractor()
    memory = open_memory(extractor=extractor)
    extractor.failing = {"Oslo burns tonight."}
    with pytest.raises(ExtractionError):
        memory.add(["Lise Holm paints ships.", "Oslo burns tonight."], on_error="fail")
    memory.compact()
    extractor.failing, extractor.asked = set(), []
    memory.add(["Lise Holm paints ships.", "Oslo burns tonight."])
    assert extractor.asked == ["Oslo burns tonight."]


@pytest.mark.parametrize("before", ["an add", "a reembedding"])
def test_compacting_after_an_interrupted_change(open_memory: Open, before: str) -> None:
    """The files of the change have the number of the generation that compacting makes."""
    embedder = CountingEmbedder(dim=16 if before == "a reembedding" else 32)
    memory = open_memory(embedder=CountingEmbedder() if before == "a reembedding" else embedder)
    if before == "a reembedding":
        memory.add(DOCUMENTS)
        embedder.failing = {"northwind press"}
        with pytest.raises(ConnectionError):
            memory.reembed(embedder)
    else:
        embedder.failing = {"ada vale"}
        with pytest.raises(ConnectionError):
            memory.add(DOCUMENTS)
    memory.compact()
    assert memory.check().findings == ()
    embedder.failing, embedder.asked = set(), []
    if before == "a reembedding":
        memory.reembed(embedder)
        assert not {ADA, BERGEN, TOVE, BREAD} & set(embedder.asked), "they were paid for"
    else:
        memory.add(DOCUMENTS)
    assert texts_of(memory) == sorted([ADA, BERGEN, TOVE, BREAD])
    assert memory.check().findings == ()


def test_damage_is_not_copied_to_where_a_new_digest_would_fit_it(index: Path, open_memory: Open) -> None:
    # The first row of each file is alive.
    for pattern in ("vectors/*-passage-*.rows", "vectors/*-fact-*.keys"):
        copy = index.with_name(pattern[10:12])
        shutil.copytree(index, copy)
        damage(one(copy, pattern), 4096 if pattern.endswith("rows") else 0)
        before = files_of(copy)
        with (
            open_memory(copy.name) as memory,
            pytest.raises(StoreError, match=r"vectors of hashing .* are damaged; run action=repair"),
        ):
            memory.compact()
        assert {name: content for name, content in files_of(copy).items() if name in before} == before
        assert check(Store(copy)).findings != ()
        assert repair(Store(copy), CountingEmbedder()).unmended == ()
        with open_memory(copy.name) as memory:
            memory.compact()
            assert memory.check().findings == ()


def test_a_vector_that_was_damaged_while_nobody_needed_it_is_made_again(
    index: Path, open_memory: Open
) -> None:
    embedder = CountingEmbedder()
    memory = open_memory(embedder=embedder)
    memory.add(["Lise Holm paints ships."])
    before = state_of(memory.index)
    memory.remove(texts=["Lise Holm paints ships."])
    path = one(index, "vectors/*-passage-*.rows")
    damage(path, path.stat().st_size - 2)
    assert memory.check().findings == (), "nothing that is alive depends on it"
    embedder.asked.clear()
    memory.add(["Lise Holm paints ships."])
    assert embedder.asked == ["Lise Holm paints ships."], "its phrases are whole"
    assert state_of(memory.index) == before
    assert memory.check().findings == ()


# ---- reembed


def test_another_embedder_asks_no_extractor_and_both_work_side_by_side(
    index: Path, open_memory: Open
) -> None:
    extractor, other = CountingExtractor(), CountingEmbedder(dim=16)
    memory = open_memory(extractor=extractor)
    extractions = list(memory.index.extractions)
    report = memory.reembed(other)
    assert report.embedded == sum(report.texts.values()) == len(other.asked)
    assert list(memory.index.extractions) == extractions
    assert extractor.asked == []
    memory.close()
    for dim in (32, 16):
        with open_memory(embedder=CountingEmbedder(dim=dim)) as reader:
            assert reader.index.phrase_emb.shape[1] == dim
            assert reader.retrieve(["Who founded Northwind Press?"])[0].passages
    with HippoRAG.open(index) as reader:
        assert reader.index.embedder == other.identity


def test_an_embedder_that_is_behind_is_refused_until_it_has_what_is_new(
    index: Path, open_memory: Open
) -> None:
    main, other = CountingEmbedder(), CountingEmbedder(dim=16)
    memory = open_memory(embedder=main)
    memory.reembed(other)
    memory.add(["Lise Holm paints ships."])
    with pytest.raises(CompatibilityError, match=r"stop at generation 2, .* is at generation 3|at 3"):
        open_memory(embedder=main)
    report = memory.reembed(main)
    assert report.embedded == len(main.asked) == 4
    assert memory.check().findings == ()


def test_reembedding_with_the_same_embedder_hides_no_reader_from_compacting(
    index: Path, open_memory: Open
) -> None:
    embedder = CountingEmbedder()
    reader, memory = open_memory(read_only=True), open_memory(embedder=embedder, wait_seconds=0)
    assert memory.reembed(embedder).embedded == 0
    memory.remove(texts=[ADA])
    with pytest.raises(LockedError, match="older generations"):
        memory.compact()
    assert len(list(reader.index.extractions)) == 4


def test_an_interrupted_change_of_precision_pays_once(index: Path, open_memory: Open) -> None:
    embedder = CountingEmbedder()
    memory = open_memory(embedder=embedder)
    before, emb = texts_of(memory), memory.index.phrase_emb
    embedder.failing = {"northwind press"}
    for _ in range(2):
        with pytest.raises(ConnectionError):
            memory.reembed(embedder, vectors="float16")
    assert sorted(embedder.asked) == before
    embedder.failing = set()
    report = memory.reembed(embedder, vectors="float16")
    assert report.embedded == len(embedder.asked) - len(before)
    assert [row.dtype for row in Store(index).identity().embedders] == ["float16"]
    assert torch.allclose(memory.index.phrase_emb, emb, atol=1e-3)
    assert memory.check().findings == ()


def test_upkeep_is_for_directories_and_not_for_readers(open_memory: Open, index: Path) -> None:
    reader = open_memory(read_only=True)
    for change in (reader.compact, reader.repair, lambda: reader.reembed(CountingEmbedder(dim=8))):
        one(index, "arrays/*")
        if change == reader.repair:
            assert reader.repair().unmended == (), "there is nothing to mend"
            continue
        with pytest.raises(ConfigError, match="was opened read-only"):
            change()
    one(index, "arrays/*").unlink()
    with pytest.raises(ConfigError, match="was opened read-only, so repair cannot change it"):
        repair(Store(index, read_only=True))


def test_an_extraction_with_half_a_surrogate_is_kept(open_memory: Open, index: Path) -> None:
    """Models write them; SQLite takes no text that is not UTF-8."""

    class Broken(CountingExtractor):
        def _extraction(self, text: str) -> Extraction:
            return Extraction(entities=("half \ud83d",), reply="\udc00", status="failed", reason="\ud800")

    memory = open_memory(extractor=Broken())
    memory.add([Document("Lise Holm paints ships.", "x", {"half": "\ud83d"})])
    with HippoRAG.open(index) as reader:
        assert state_of(reader.index) == state_of(memory.index)
        (failed,) = reader.stats().failed
        assert (failed.reason, failed.reply) == ("\ud800", "\udc00")
