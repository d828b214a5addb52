"""Opening what is missing, cut short, swapped or of another generation: a clear error, never other data."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import CompatibilityError, ConfigError, HippoRAGError, StoreError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.store.store import Store
from hipporag_torch.text import TextOptions

from .conftest import ADA, BERGEN, DOCUMENTS, GRAPH, CountingEmbedder, Open, files_of, opener, state_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    with opener(folder) as open_one:
        memory = open_one()
        memory.add(DOCUMENTS[:2])
        shutil.copytree(folder / "index" / "arrays", folder / "older")
        memory.add(DOCUMENTS[2:])
    return folder


@pytest.fixture
def index(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path / "index"


def one(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


ARRAYS, ROWS = "arrays/*.safetensors", "vectors/*-phrase-*.rows"


@pytest.mark.parametrize("pattern", [ARRAYS, ROWS])
def test_a_file_that_is_missing_or_cut_short(index: Path, pattern: str) -> None:
    path = one(index, pattern)
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    with pytest.raises(StoreError, match=rf"{path.name}.* (cannot be read|is cut short).*action=repair"):
        HippoRAG.open(index)
    path.unlink()
    with pytest.raises(StoreError, match=rf"{path.name}.*cannot be read: No such file.*action=repair"):
        HippoRAG.open(index)
    path.write_bytes(content)
    HippoRAG.open(index).close()


def test_one_kind_of_vectors_in_the_place_of_another(index: Path) -> None:
    shutil.copy(one(index, "vectors/*-fact-*.rows"), one(index, ROWS))
    with pytest.raises(StoreError, match=r"header says b'.*facts of .*', expected '.*phrases of"):
        HippoRAG.open(index)


@pytest.mark.parametrize("pattern", [ARRAYS, ROWS])
def test_one_kind_of_file_in_the_place_of_another(index: Path, pattern: str) -> None:
    target = one(index, pattern)
    for source in (index / "records.sqlite", one(index, ROWS if pattern == ARRAYS else ARRAYS)):
        shutil.copy(source, target)
        with pytest.raises(StoreError, match="action=repair"):
            HippoRAG.open(index)


def test_arrays_of_an_older_generation(index: Path, tmp_path: Path) -> None:
    shutil.copy(one(tmp_path / "older", "*"), one(index, ARRAYS))
    with pytest.raises(StoreError, match=r"of generation 2 cannot be read: they are not what was written"):
        HippoRAG.open(index)


@pytest.mark.parametrize("dim", [32, 16])
def test_arrays_of_another_index(index: Path, open_memory: Open, dim: int) -> None:
    with open_memory("other", embedder=CountingEmbedder(dim=dim)) as memory:
        memory.add([ADA])
        memory.add([BERGEN])
    shutil.copy(one(index.with_name("other"), ARRAYS), one(index, ARRAYS))
    with pytest.raises(StoreError, match=r"of generation 2 cannot be read: they are not what was written"):
        HippoRAG.open(index)


def test_vectors_of_another_embedder(index: Path, open_memory: Open) -> None:
    with open_memory("other", embedder=CountingEmbedder(dim=16)) as memory:
        memory.add(DOCUMENTS)
    shutil.copy(one(index.with_name("other"), ROWS), one(index, ROWS))
    with pytest.raises(StoreError, match=r"32 float32"):
        HippoRAG.open(index)


def test_arrays_of_which_a_bit_was_flipped_are_not_handed_on_to_the_next_generation(index: Path) -> None:
    path = one(index, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StoreError, match=r"not what was written; run action=repair"):
        HippoRAG.open(index)


def test_stating_another_identity_is_refused_with_both_sides(index: Path) -> None:
    for options, message in (
        ({"text": TextOptions(content_id="md5")}, r"content_id='sha256', but content_id='md5' was stated"),
        ({"graph": type(GRAPH)()}, r"synonym_threshold=0.4, but synonym_threshold=0.8 was stated"),
        ({"embedder": HashingEmbedder(dim=8)}, r"has vectors of .*dim=32.* embedder .*dim=8.* reembed"),
    ):
        with pytest.raises(CompatibilityError, match=message):
            HippoRAG.open(index, **options)
    with pytest.raises(ConfigError, match=r"keeps its vectors as float32, float16 was stated; .*reembed"):
        HippoRAG.open(index, vectors="float16")
    with pytest.raises(ConfigError, match=r"index.vectors must be one of float32, float16, got 'int8'"):
        HippoRAG.open(index.with_name("new"), embedder=HashingEmbedder(dim=8), vectors="int8")  # pyright: ignore[reportArgumentType]
    assert not index.with_name("new").exists()


def test_what_is_stated_and_the_same_is_taken(index: Path) -> None:
    with HippoRAG.open(
        index, embedder=HashingEmbedder(dim=32), text=TextOptions(), graph=GRAPH, vectors="float32"
    ) as memory:
        assert len(memory.index.passages) == 4


def test_a_directory_that_is_not_an_index(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").touch()
    (tmp_path / "file").touch()
    for name, message in (
        ("notes", r"not an index directory: it has no records.sqlite, but holds a.md"),
        ("file", r"is a file, expected an index directory"),
    ):
        with pytest.raises(StoreError, match=message):
            HippoRAG.open(tmp_path / name, embedder=HashingEmbedder(dim=8))
    with pytest.raises(StoreError, match=r"there is no index in .*nowhere \(looked from "):
        HippoRAG.open(tmp_path / "nowhere")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md", "file", "notes"]


def test_negative_patience_is_refused(tmp_path: Path) -> None:
    for wait_seconds in (-1.0, float("nan")):
        with pytest.raises(ConfigError, match=r"index.wait_seconds must be at least 0, or null"):
            Store(tmp_path, wait_seconds=wait_seconds)


def test_settings_are_kept_for_building_the_embedder_again(open_memory: Open, tmp_path: Path) -> None:
    open_memory(settings='{"_target_": "x"}').reembed(CountingEmbedder(dim=8), settings='{"dim": 8}')
    kept = {
        row.identity.dim: json.loads(row.settings) for row in Store(tmp_path / "index").identity().embedders
    }
    assert kept == {32: {"_target_": "x"}, 8: {"dim": 8}}


def test_what_a_crash_left_of_the_making_is_made(open_memory: Open, tmp_path: Path) -> None:
    directory = tmp_path / "index"
    (directory / "arrays").mkdir(parents=True)
    (directory / "arrays" / "0-1.safetensors.partial").write_bytes(b"half")
    (directory / "records.sqlite").touch()
    memory = open_memory(graph=GRAPH)
    memory.add([ADA])
    assert sorted(files_of(directory)) == [
        "arrays/1-1.safetensors",
        "records.sqlite",
        *(f"vectors/1-{kind}-1.{end}" for kind in ("fact", "passage", "phrase") for end in ("keys", "rows")),
    ]


def test_a_memory_without_vectors(tmp_path: Path) -> None:
    with HippoRAG.open(tmp_path / "index", embedder=NoEmbedder(), extractor=NoExtractor()) as memory:
        memory.add(DOCUMENTS)
        assert memory.check().findings == ()
        memory.remove(texts=[ADA])
        memory.compact()
        state = state_of(memory.index)
    with HippoRAG.open(tmp_path / "index") as memory:
        assert state_of(memory.index) == state


@pytest.mark.parametrize("table", ["generations", "properties", "embedders"])
def test_records_that_lost_a_table(index: Path, table: str) -> None:
    with closing(sqlite3.connect(index / "records.sqlite", isolation_level=None)) as connection:
        connection.execute(f"DELETE FROM {table}")
    for action in (HippoRAG.open, lambda path: HippoRAG.open(path, embedder=HashingEmbedder(dim=32))):
        with pytest.raises(HippoRAGError, match=r"(backup|damaged|reembed)"):
            action(index)
