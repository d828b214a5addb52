"""stats, sources and remove, and what every command says of an index that it cannot open."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from hipporag_torch import HippoRAG
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.store.locks import writer_lock

from .conftest import QUESTION, Call

ALL = [
    ("ask", QUESTION),
    ("explain", QUESTION),
    ("stats",),
    ("sources",),
    ("remove", "notes/ada.md", "--preview"),
]


def test_stats_need_no_model(call: Call, index: Path) -> None:
    told = call("stats", "--index", index, "--json").json
    assert set(told) == {
        *(
            "path",
            "generation",
            "passages",
            "sources",
            "phrases",
            "facts",
            "synonyms",
            "edges",
            "without_facts",
        ),
        *("failed", "extractors", "embedder", "megabytes", "interrupted"),
    }
    assert (told["path"], told["passages"], told["sources"], told["facts"]) == (str(index), 2, 3, 3)
    assert (told["embedder"], told["failed"]) == ("hashing", [])
    shown = call("stats", "--index", index)
    assert (shown.status, shown.err) == (0, "")
    assert "passages      2" in shown.out


def test_sources_are_named_with_what_their_passages_share(call: Call, index: Path) -> None:
    told = call("sources", "--index", index, "--json").json
    assert set(told) == {"prefix", "sources"}
    names = ["notes/ada.md", "notes/places/bergen.md", "notes/places/same.md"]
    assert [source["source_id"] for source in told["sources"]] == names
    first = told["sources"][0]
    assert set(first) == {"source_id", "passages", "failed", "metadata"}
    assert (first["passages"], first["failed"]) == (1, 0)
    assert first["metadata"].keys() == {"root", "path", "mtime"}
    shown = call("sources", "--index", index, "--prefix", "notes/places/").out.splitlines()
    assert [line.split()[0] for line in shown] == names[1:]
    assert "no source begins with 'x'" in call("sources", "--index", index, "--prefix", "x").out
    assert call("sources", "--index", index, "--prefix", "x", "--json").json == {"prefix": "x", "sources": []}


def test_metadata_that_differs_within_a_source_is_left_out(
    call: Call, index: Path, notes: Path, made: list[str]
) -> None:
    text = "# A\n\nOne thing of many.\n\n# B\n\nAnother thing of many.\n"
    (notes / "two.md").write_text(text, encoding="utf-8")
    cut = ["chunker=markdown", "chunker.min_words=1"]
    call("index-folder", notes, "--index", index, "--name", "notes", "--glob", "two.md", *made, *cut)
    (source,) = call("sources", "--index", index, "--prefix", "notes/two", "--json").json["sources"]
    assert (source["passages"], source["failed"]) == (2, 2)
    assert source["metadata"].keys() == {"root", "path", "mtime"}


def test_remove_takes_out_what_no_other_source_holds(call: Call, index: Path) -> None:
    arguments = ("remove", "notes/ada.md", "notes/places/same.md", "nothing", "--index", index)
    preview = call(*arguments, "--preview", "--json").json
    assert (preview["preview"], set(preview)) == (True, {"preview", "removed"})
    removed = preview["removed"]
    assert (len(removed["passages_removed"]), len(removed["passages_kept"])) == (1, 1)
    assert removed["not_found"] == ["nothing"]
    assert "1 passage would be removed, and there is nobody to ask" in call(*arguments).misuse
    assert call("stats", "--index", index, "--json").json["passages"] == 2
    shown = call(*arguments, "--yes")
    assert (shown.status, "1 removed" in shown.out, "'nothing'" in shown.err or "nothing" in shown.err) == (
        0,
        True,
        True,
    )
    assert call("stats", "--index", index, "--json").json["passages"] == 1


def test_a_source_that_is_not_there_is_an_error(call: Call, index: Path) -> None:
    error = call("remove", "ada.md", "--index", index, "--yes").error
    assert "no source 'ada.md'" in error
    assert "hipporag-torch sources" in error


@pytest.mark.parametrize("command", ALL)
def test_an_index_that_is_not_there_says_how_to_make_one(
    call: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    error = call(*command, "--index", tmp_path / "no index").error
    assert error.startswith(f"StoreError: there is no index in {tmp_path / 'no index'}")
    assert f"hipporag-torch index-folder PATH --index '{tmp_path / 'no index'}'" in error
    assert not (tmp_path / "no index").exists()


@pytest.mark.parametrize("command", ALL)
def test_another_folder_is_no_index(call: Call, notes: Path, command: tuple[str, ...]) -> None:
    assert "is not an index directory" in call(*command, "--index", notes).error


@pytest.mark.parametrize("command", [*ALL, ("index-folder", "{notes}")])
@pytest.mark.parametrize(("schema", "way_out"), [(1, "build the index again"), (99, "install a newer")])
def test_an_index_of_another_version_is_refused(
    call: Call, copied: Path, notes: Path, command: tuple[str, ...], schema: int, way_out: str
) -> None:
    with sqlite3.connect(copied / "records.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    models = ["extractor=none"] if command[0] == "index-folder" else []
    error = call(*(part.format(notes=notes) for part in command), "--index", copied, *models).error
    assert error.startswith("CompatibilityError")
    assert way_out in error


def test_a_question_to_an_index_that_does_not_know_its_embedder_asks_for_it(
    call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    with HippoRAG.open(path, embedder=HashingEmbedder(dim=64), extractor=NoExtractor()) as memory:
        memory.add(["Bergen lies in Norway."])
    error = call("ask", QUESTION, "--index", path, "runtime.cache=false").error
    assert "state the embedder (embedder=" in error
    stated = ["runtime.cache=false", "embedder=hashing", "embedder.dim=64"]
    assert (
        call("ask", QUESTION, "--index", path, "--json", *stated).json["answer"] == "Bergen lies in Norway."
    )
    assert call("sources", "--index", path, "--json").json["sources"][0]["passages"] == 1


def test_a_locked_index_names_who_writes_and_what_to_do(
    call: Call, index: Path, notes: Path, made: list[str]
) -> None:
    (notes / "new.md").write_text("Something new.", encoding="utf-8")
    with writer_lock(index, "compact", 0):
        wait = "index.wait_seconds=0"
        error = call("remove", "notes/ada.md", "--yes", "--index", index, wait).error
        assert "action compact" in error
        assert "try again later" in error
        folder = call("index-folder", notes, "--index", index, "--name", "notes", "--json", *made, wait)
        assert "action compact" in folder.error
        # Readers go on meanwhile.
        assert call("ask", QUESTION, "--index", index, "--json", "runtime.cache=false").json["answer"]


def test_nothing_under_a_read_only_index_is_written(call: Call, index: Path) -> None:
    for path in index.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in index.rglob("*")}
    read_only = ["index.read_only=true", "runtime.cache=false"]
    assert call("ask", QUESTION, "--index", index, *read_only).status == 0
    assert call("stats", "--index", index, "index.read_only=true").status == 0
    assert (
        "opened read-only"
        in call("remove", "notes/ada.md", "--yes", "--index", index, "index.read_only=true").error
    )
    assert {path: path.stat().st_mtime_ns for path in index.rglob("*")} == before
    for path in index.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(index)
