"""What `check` finds of damage, byte by byte."""

import json
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hipporag_torch.errors import HippoRAGError, StoreError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.store.disk import digest_of_file
from hipporag_torch.store.records import COLUMNS
from hipporag_torch.store.seal import seal
from hipporag_torch.store.store import Store
from hipporag_torch.upkeep import check, repair

from .conftest import ADA, BREAD, DOCUMENTS, TOVE, CountingEmbedder, CountingExtractor, Open, opener, state_of

PARTS = {
    "records": "records.sqlite",
    "arrays": "arrays/*.safetensors",
    **{f"{kind} vectors": f"vectors/*-{kind}-*.rows" for kind in ("passage", "phrase", "fact")},
    **{f"{kind} keys": f"vectors/*-{kind}-*.keys" for kind in ("passage", "phrase", "fact")},
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four passages, of which one has failed; a fifth that was removed; one staged extraction."""
    folder = tmp_path_factory.mktemp("template")
    extractor = CountingExtractor()
    extractor.failing = {BREAD}
    with opener(folder) as open_one:
        memory = open_one(extractor=extractor)
        memory.add([DOCUMENTS[0], "Ida Vale left Oslo."])
        memory.add(DOCUMENTS)
        memory.remove(texts=["Ida Vale left Oslo."])
        with pytest.raises(HippoRAGError):
            memory.add(["Oslo harbour freezes over.", BREAD], on_error="fail")
        assert memory.check().findings == ()
    return folder / "index"


@pytest.fixture
def index(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "index")


def only(index: Path, part: str) -> Path:
    (path,) = index.glob(PARTS[part])
    return path


def parts_of(findings: tuple) -> set[str]:
    return {finding.part for finding in findings}


def alter(index: Path, *statements: str, sealed: bool = False) -> None:
    with closing(sqlite3.connect(index / "records.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
        if sealed:
            seal(connection)


def flip(path: Path, random_: random.Random) -> str:
    content = bytearray(path.read_bytes())
    offset, bit = random_.randrange(len(content)), 1 << random_.randrange(8)
    content[offset] ^= bit
    path.write_bytes(content)
    return f"bit {bit} of byte {offset} of {path.name}"


def assert_told_or_harmless(index: Path, whole: dict[str, object], what: str) -> bool:
    """Whether the damage is told of; if it is not, all live data is as it was."""
    try:
        told = bool(check(Store(index, read_only=True)).findings)
    except HippoRAGError:
        return True
    if not told:
        with HippoRAG.open(index) as memory:
            assert state_of(memory.index) == whole, what
    return told


def flips(index: Path, paths: list[str], count: int, seed: int) -> int:
    """How many of `count` flipped bits were told of."""
    random_ = random.Random(seed)
    with HippoRAG.open(index) as memory:
        whole = state_of(memory.index)
    copy = index.with_name("copy")
    told = 0
    for number in range(count):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(index, copy)
        what = flip(copy / paths[number % len(paths)], random_)
        told += assert_told_or_harmless(copy, whole, what)
    return told


def test_a_flipped_bit_is_found_or_harms_nothing(index: Path) -> None:
    paths = sorted(str(p.relative_to(index)) for p in index.rglob("*") if p.is_file() and p.stat().st_size)
    assert len(paths) == len(PARTS)
    assert flips(index, paths, 40, seed=1) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_hundreds_of_flipped_bits_are_found_or_harm_nothing(index: Path, seed: int) -> None:
    paths = sorted(str(p.relative_to(index)) for p in index.rglob("*") if p.is_file() and p.stat().st_size)
    assert flips(index, paths + ["records.sqlite"] * 8, 150, seed) > 40


@pytest.mark.parametrize("part", [part for part in PARTS if part != "records"])
def test_every_bit_of_arrays_live_vectors_and_their_keys_is_covered(index: Path, part: str) -> None:
    path = only(index, part)
    content = path.read_bytes()
    # Past the header of a file of vectors, in its first row, which is alive; anywhere else.
    for offset in (4096, 4100) if "vectors" in part else (0, 15) if "keys" in part else (8, len(content) - 1):
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 16]) + content[offset + 1 :])
        assert parts_of(check(Store(index)).findings) == {"arrays" if part == "arrays" else "vectors"}
    path.write_bytes(content)
    assert check(Store(index)).findings == ()


@pytest.mark.parametrize("part", PARTS)
def test_a_file_that_is_missing_or_cut_short(index: Path, part: str) -> None:
    path = only(index, part)
    content = path.read_bytes()
    for change in (path.unlink, lambda: path.write_bytes(content[: len(content) // 2])):
        change()
        if part == "records":
            with pytest.raises(StoreError):
                check(Store(index))
        else:
            assert parts_of(check(Store(index)).findings) == {"arrays" if part == "arrays" else "vectors"}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_record_that_is_gone(index: Path, table: str) -> None:
    alter(index, f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table} WHERE died IS NULL)")
    assert table in parts_of(check(Store(index)).findings)


@pytest.mark.parametrize("table", ["embedders", "vector_files", "segments", "seal"])
def test_a_row_of_the_small_tables_that_is_gone(index: Path, table: str) -> None:
    alter(index, f"DELETE FROM {table}")
    assert parts_of(check(Store(index)).findings) == {"options"}


@pytest.mark.parametrize("table", ["properties", "generations"])
def test_what_nothing_can_be_read_without(index: Path, table: str) -> None:
    alter(index, f"DELETE FROM {table}")
    with pytest.raises(StoreError, match="damaged"):
        check(Store(index))


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_a_record_is_covered(index: Path, table: str) -> None:
    for column in (*COLUMNS[table], "born", "digest"):
        copy = index.with_name(f"{table}-{column}")
        shutil.copytree(index, copy)
        where = f"WHERE id = (SELECT min(id) FROM {table} WHERE died IS NULL)"
        alter(copy, f"UPDATE {table} SET {column} = CAST({column} || 'x' AS BLOB) {where}")
        assert table in parts_of(check(Store(copy)).findings), column


def test_damage_names_the_passages_that_it_concerns(index: Path) -> None:
    alter(
        index,
        f"UPDATE passages SET text = text || '!' WHERE text = '{ADA}'",
        "UPDATE extractions SET content = '{}' "
        f"WHERE died IS NULL AND passage = (SELECT id FROM passages WHERE text = '{TOVE}')",
    )
    with HippoRAG.open(index) as memory:
        passage_id = memory.index.text.passage_id
    named = {finding.part: (finding.ids, finding.way_out) for finding in check(Store(index)).findings}
    assert named["passages"][0] == (passage_id(ADA),)
    assert "remove these passages by their ids" in named["passages"][1]
    assert named["extractions"][0] == (passage_id(TOVE),)
    assert "action=repair" in named["extractions"][1]


def test_options_and_counts_that_were_changed(index: Path) -> None:
    alter(index, "UPDATE properties SET value = replace(value, '0.4', '0.5') WHERE name = 'graph'")
    (finding,) = check(Store(index)).findings
    assert (finding.part, finding.way_out) == (
        "options",
        "restore the index from a backup, or build it again",
    )
    alter(index, "UPDATE generations SET sources = 99", sealed=True)
    assert "expected 99" in "".join(finding.problem for finding in check(Store(index)).findings)


def rewrite(index: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Change one array, and all digests with it: arrays that somebody has built wrongly."""
    path = only(index, "arrays")
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", content[:8])
    start, stop = (8 + length + at for at in json.loads(content[8 : 8 + length])[name]["data_offsets"])
    content[start:stop] = change(bytes(content[start:stop]))
    path.write_bytes(content)
    with closing(sqlite3.connect(index / "records.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE embedders SET arrays_digest = ?", (digest_of_file(path),))
        seal(connection)


def test_a_passage_with_the_vector_of_another_under_digests_that_fit(index: Path) -> None:
    rewrite(index, "passage_vector", lambda rows: rows[4:8] + rows[4:])
    (finding,) = check(Store(index)).findings
    assert (finding.part, finding.problem) == ("vectors", "1 passages have the vectors of other texts")
    assert repair(Store(index)).unmended == ()
    assert check(Store(index)).findings == ()


@pytest.mark.parametrize("quick", [True, False])
def test_a_graph_that_differs_from_its_records_under_digests_that_fit(index: Path, quick: bool) -> None:
    # The last bit of the first edge's weight.
    rewrite(index, "weight", lambda weights: bytes([weights[0] ^ 1]) + weights[1:])
    (finding,) = check(Store(index), quick=quick).findings
    assert (finding.part, finding.problem) == ("graph", "the edges are not those of the records")


@pytest.mark.parametrize("name", ["phrase_tokens", "fact_tokens"])
def test_tokens_of_other_words_under_digests_that_fit(index: Path, name: str) -> None:
    rewrite(index, name, lambda tokens: bytes([tokens[0] ^ 1]) + tokens[1:])
    (finding,) = check(Store(index), quick=True).findings
    assert (finding.part, finding.problem) == ("lexicon", "the words are not those of the phrases and facts")
    assert repair(Store(index)).unmended == ()
    assert check(Store(index)).findings == ()


def test_ends_that_are_names_or_not_as_nobody_wrote_them_under_digests_that_fit(index: Path) -> None:
    rewrite(index, "statement_named", lambda named: bytes([named[0] ^ 1]) + named[1:])
    (finding,) = check(Store(index), quick=True).findings
    assert finding.problem == "the statements are not those of the extractions"
    assert repair(Store(index)).unmended == ()
    assert check(Store(index)).findings == ()


def test_a_read_only_check_writes_nothing_and_a_check_counts(index: Path) -> None:
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in index.rglob("*") if path.is_file()
    }
    report = check(Store(index, read_only=True))
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in index.rglob("*") if p.is_file()} == before
    assert report.checked == {"passages": 4, "sources": 4, "extractions": 4, "phrases": 4, "facts": 3}
    assert report.findings == ()


def test_both_embedders_are_checked_while_both_are_up_to_date(index: Path, open_memory: Open) -> None:
    with open_memory() as memory:
        memory.reembed(CountingEmbedder(dim=16))
        assert memory.check().findings == ()
        for path in index.glob("vectors/1-passage-*.rows"):
            path.unlink()
        assert parts_of(memory.check().findings) == {"vectors"}
