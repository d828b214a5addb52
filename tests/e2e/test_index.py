"""scripts/index.py as a user runs it, and the other scripts on the directory that it makes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch import HippoRAG
from hipporag_torch.config import compose
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.minilm import packaged_minilm
from hipporag_torch.extractors.stored import StoredExtractor

from .conftest import predictions

Run = Callable[..., Any]
Act = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
QUESTION = "question='In which country was Northwind Press founded?'"
BERGEN = "Bergen\nBergen lies on the west coast of Norway."


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file under `folder` with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def shown(done: Any) -> dict[str, str]:
    """The rows of what a script printed, by their name."""
    rows = [line.split(maxsplit=1) for line in done.out.splitlines() if line[:1].strip()]
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def part(stated: Sequence[str], *groups: str) -> list[str]:
    """The overrides of some groups, and of the runtime."""
    return [o for o in stated if o.split(".")[0].split("=")[0] in (*groups, "runtime")]


@pytest.fixture(scope="module")
def template(
    run_script: Run, stated: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """An index of the small corpus, to be copied, and how making it looked."""
    path = tmp_path_factory.mktemp("template") / "index"
    return path, run_script("index", f"index.path={path}", "action=add", *stated)


@pytest.fixture
def index(template: tuple[Path, Any], tmp_path: Path) -> Path:
    path = tmp_path / "index"
    shutil.copytree(template[0], path)
    return path


@pytest.fixture
def act(fork_script: Run, stated: list[str], index: Path) -> Act:
    """Run an action on `index`; the groups named come from `stated`."""

    def run(action: str, *overrides: str, groups: Sequence[str] = ()) -> Any:
        return fork_script(
            "index", f"index.path={index}", f"action={action}", *part(stated, *groups), *overrides
        )

    return run


def succeeded(done: Any) -> Any:
    assert (done.status, done.err.strip()) == (0, ""), done.out + done.err
    return done


def test_add_makes_an_index_and_says_what_came(template: tuple[Path, Any]) -> None:
    path, done = template
    succeeded(done)
    assert f"made the index {path}" in done.out
    rows = shown(done)
    assert rows["documents"] == "7"
    assert rows["passages"] == "7 added, 0 known already"
    assert (rows["phrases"], rows["facts"]) == ("10 added", "7 added")
    assert rows["dropped"] == "1 wrong arity"
    assert "extract" in rows["seconds"]
    assert "\x1b" not in done.out


def test_adding_again_costs_nothing_and_needs_no_embedder_stated(act: Act, index: Path) -> None:
    before = bytes_of(index)
    done = succeeded(act("add", groups=["dataset", "extractor"]))
    assert shown(done)["passages"] == "0 added, 7 known already"
    assert bytes_of(index) == before


def test_stats_say_what_is_there(act: Act, index: Path) -> None:
    rows = shown(succeeded(act("stats")))
    assert {name: rows[name] for name in ("passages", "phrases", "facts", "edges")} == {
        "passages": "7",
        "phrases": "10",
        "facts": "7",
        "edges": rows["edges"],
    }
    assert rows["generation"] == "1, by add"
    assert rows["embedder"].startswith("hashing (dim 256")
    assert rows["text"] == "normalisation=unicode fact_template=plain content_id=sha256"
    assert rows["size"].endswith("kB")


PREVIEWS: dict[str, tuple[list[str], list[str], str]] = {
    "add": (["source_id=s"], ["dataset", "extractor"], "0 new, 7 known already"),
    "update": (["source_id=s"], ["dataset", "extractor"], "7 known already"),
    "remove": (["remove.source_ids=[s]"], [], "3 to remove"),
    "compact": ([], [], "to drop"),
    "repair": ([], [], "nothing to mend"),
    "export": (["export.path={tmp}/out", "export.format=graphml"], [], "would write"),
    "import": (["import.path={small}/openie.json"], [], "0 new, 7 known already"),
    "reembed": (["embedder=hashing", "embedder.dim=64"], [], "hashing (dim 64"),
    "reextract": ([], ["extractor"], "10 to extract again"),
    "rebuild_graph": (["graph=reference"], [], "edges"),
    "retry": ([], ["extractor"], "0 to extract again"),
}


@pytest.mark.parametrize("action", PREVIEWS)
def test_a_preview_says_what_would_be_done_and_changes_no_byte(
    act: Act, index: Path, small: Path, tmp_path: Path, action: str
) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    rows = [{"title": f"T{n}", "text": f"Extra {n}."} for n in range(3)]
    (extra / "corpus.json").write_text(json.dumps(rows), encoding="utf-8")
    succeeded(act("add", f"dataset.path={extra}", "extractor=none", "source_id=s"))
    before = bytes_of(tmp_path)
    overrides, groups, said = PREVIEWS[action]
    filled = [override.format(tmp=tmp_path, small=small) for override in overrides]
    done = succeeded(act(action, "preview=true", *filled, groups=groups))
    assert said in done.out
    assert done.out.rstrip().endswith("preview: nothing was changed")
    assert bytes_of(tmp_path) == before


def test_a_preview_makes_no_directory(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    path = tmp_path / "none"
    done = succeeded(fork_script("index", f"index.path={path}", "action=add", "preview=true", *stated))
    assert f"there is no index in {path} yet; it would be made" in done.out.replace("\n", " ")
    assert "7 new, 0 known already" in done.out
    assert not path.exists()


def test_update_replaces_what_a_source_holds(act: Act, tmp_path: Path) -> None:
    for number, text in enumerate(("Rye is grown in Voss.", "Rye is milled in Odda.")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "corpus.json").write_text(json.dumps([{"title": "Rye", "text": text}]), encoding="utf-8")
    succeeded(act("add", f"dataset.path={tmp_path / '0'}", "extractor=none", "source_id=rye.md"))
    done = act("update", f"dataset.path={tmp_path / '1'}", "extractor=none", "source_id=rye.md")
    assert shown(succeeded(done))["passages"] == "1 added, 0 known already, 1 removed"
    assert act("remove", "remove.texts=['Rye\\nRye is grown in Voss.']").status == 1
    assert shown(act("stats"))["passages"] == "8"
    error = act("update", f"dataset.path={tmp_path / '1'}", "extractor=none", "source_id=oats.md").error
    assert "the index has no source 'oats.md' to update" in error


def test_removing_less_than_was_named_is_a_warning_and_nothing_at_all_a_failure(
    act: Act, index: Path, tmp_path: Path
) -> None:
    with HippoRAG.open(index, read_only=True) as memory:
        ids = [passage.id for passage in memory.index.passages]
    done = act("remove", f"remove.passage_ids=[{ids[0]},nobody]")
    assert (done.status, done.err.strip()) == (0, "warning: not in the index, of what was named: nobody")
    assert shown(done)["passages"] == "1 removed"
    before = bytes_of(index)
    done = act("remove", "remove.source_ids=[nobody]")
    assert done.status == 1
    assert "not in the index, of what was named: nobody" in done.err
    assert bytes_of(index) == before
    assert "action=remove needs to be told what" in act("remove").error
    assert "remove.texts must be a list" in act("remove", "remove.texts=word").error


def test_compact_erases_what_was_removed(act: Act, index: Path) -> None:
    with HippoRAG.open(index, read_only=True) as memory:
        (bergen,) = [passage.id for passage in memory.index.passages if passage.text == BERGEN]
    succeeded(act("remove", f"remove.passage_ids=[{bergen}]"))
    assert "1 passages" in shown(act("stats"))["removed"]
    assert any(b"west coast of Norway" in content for content in bytes_of(index).values())
    assert "1 passages" in shown(succeeded(act("compact")))["dropped"]
    assert not any(b"west coast of Norway" in content for content in bytes_of(index).values())


def test_check_and_repair_find_and_mend_lost_vectors(act: Act, index: Path) -> None:
    assert "nothing wrong" in succeeded(act("check")).out
    assert "nothing to mend" in succeeded(act("repair")).out
    for path in (index / "vectors").glob("*passage*.rows"):
        content = bytearray(path.read_bytes())
        content[-3] ^= 0xFF
        path.write_bytes(content)
    done = act("check", "check.quick=true")
    assert (done.status, done.err) == (1, "")
    assert "passage vectors of hashing are not what was written" in done.out.replace("\n", " ")
    assert "→ run action=repair" in done.out
    assert "embedded again" in succeeded(act("repair")).out
    assert "nothing wrong" in succeeded(act("check")).out


def test_an_index_that_does_not_open_is_checked_and_repaired(act: Act, index: Path) -> None:
    for path in (index / "arrays").iterdir():
        path.unlink()
    assert "run action=repair" in act("stats").error
    done = act("check")
    assert done.status == 1
    assert "is missing" in done.out
    succeeded(act("repair"))
    assert shown(succeeded(act("stats")))["passages"] == "7"


def test_a_repair_that_cannot_mend_everything_fails(act: Act, index: Path) -> None:
    import sqlite3

    with sqlite3.connect(index / "records.sqlite") as connection:
        connection.execute("UPDATE passages SET text = 'changed by hand' WHERE id = 1")
    connection.close()
    done = act("repair")
    assert done.status == 1
    assert "remove these passages by their ids" in done.out


@pytest.mark.parametrize(
    ("files", "action", "message"),
    [
        (None, "stats", "StoreError: there is no index in {path} (looked from {root})"),
        ([], "stats", "StoreError: there is no index in {path}"),
        ([], "check", "StoreError: there is no index in {path}"),
        ([], "repair", "StoreError: there is no index in {path}"),
        (
            ["a.txt"],
            "stats",
            "StoreError: {path} is not an index directory: it has no records.sqlite, but holds a.txt",
        ),
        (["records.sqlite"], "check", "records.sqlite cannot be read: file is not a database"),
    ],
)
def test_a_path_that_is_no_index(
    fork_script: Run, stated: list[str], tmp_path: Path, files: list[str] | None, action: str, message: str
) -> None:
    path = tmp_path / "place"
    if files is not None:
        path.mkdir()
    for name in files or ():
        (path / name).write_text("not an index " * 100, encoding="utf-8")
    done = fork_script("index", f"index.path={path}", f"action={action}", *part(stated))
    assert message.format(path=path, root=ROOT) in done.error


def test_an_empty_directory_becomes_an_index(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    succeeded(fork_script("index", f"index.path={tmp_path}", "action=add", *stated))
    assert (tmp_path / "records.sqlite").is_file()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "action is not set; give it as action=NAME, one of add, update, "),
        (["action=ad"], "there is no action 'ad'; it must be one of add, update, "),
        (
            ["action=stats", "index.path=null"],
            "index.path is not set; give the index directory as index.path=DIR",
        ),
        (
            ["action=stats", "dataset=sample"],
            "dataset is set, but action=stats does not read it; it is for add, update",
        ),
        (["action=stats", "preview=true"], "preview is set, but action=stats does not read it"),
        (
            ["action=check", "remove.texts=[a]"],
            "remove.texts is set, but action=check does not read it; it is for remove",
        ),
        (["action=add", "remove.texts=[a]"], "remove.texts is set, but action=add does not read it"),
        (
            ["action=retry", "extractor=none", "on_error=stop"],
            "on_error must be quarantine or fail, got 'stop'",
        ),
        (["action=compact", "preview=maybe"], "preview must be true or false, got 'maybe'"),
        (["action=check", "check.quick=1"], "check.quick must be true or false, got 1"),
        (["action=stats", "index.read_only=no"], "index.read_only must be true or false, got 'no'"),
        (["action=stats", "index.wait_seconds=long"], "index.wait_seconds must be a number of seconds"),
        (["action=update", "extractor=none"], "action=update replaces what one source holds"),
        (["action=reembed"], "action=reembed needs the embedder to go on with"),
        (["action=rebuild_graph"], "action=rebuild_graph needs the options to weigh edges by"),
        (["action=export"], "export.path is not set"),
        (
            ["action=export", "export.path=x", "export.format=csv"],
            "export.format must be one of parquet, graphml, upstream",
        ),
        (
            ["action=export", "export.path=x", "export.texts=true"],
            "export.texts is for export.format=graphml",
        ),
        (["action=import"], "import.path is not set"),
        (["action=add", "dataset=sample"], "extractor.path is not set"),
        (["action=stats", "index.wait_seconds=-1"], "index.wait_seconds must be at least 0"),
        (
            ["action=remove", "remove.texts=[a]", "index.read_only=true"],
            "was opened read-only, so remove cannot",
        ),
        (["action=stats", "+check.deep=true"], "unknown key check.deep"),
        (["action=stats", "text=reference"], "was built with text options normalisation='unicode'"),
        (["action=stats", "graph.fact_weight=3"], "fact_weight=2.0, but fact_weight=3"),
        (["action=stats", "index.vectors=float16"], "keeps its vectors as float32, float16 was stated"),
    ],
)
def test_mistakes_are_one_line(
    fork_script: Run, stated: list[str], index: Path, overrides: list[str], message: str
) -> None:
    before = bytes_of(index)
    assert message in fork_script("index", f"index.path={index}", *part(stated), *overrides).error
    assert bytes_of(index) == before


def test_config_01_another_embedder_is_refused_until_the_index_is_reembedded(
    act: Act, fork_script: Run, stated: list[str], index: Path, tmp_path: Path
) -> None:
    other = ["embedder=hashing", "embedder.dim=64"]
    ask = ["retrieve", f"index.path={index}", *part(stated), QUESTION, f"hydra.run.dir={tmp_path / 'run'}"]
    error = fork_script(*ask, *other).error
    assert error.startswith("CompatibilityError")
    assert "name='hashing'" in error
    for way_out in ("dim=256", "dim=64", "reembed", "another directory"):
        assert way_out in error
    done = succeeded(act("reembed", *other))
    assert shown(done)["texts"] == "7 passages, 10 phrases, 7 facts; 24 had to be embedded"
    assert "stored:openie.json" in shown(act("stats"))["extracted"]
    for overrides in (other, []):
        assert "route graph" in succeeded(fork_script(*ask, *overrides)).out
    again = succeeded(act("reembed", *other))
    assert "0 had to be embedded" in again.out


def test_vectors_of_half_the_size(act: Act, index: Path) -> None:
    done = succeeded(act("reembed", "index.vectors=float16"))
    assert "24 had to be embedded" in done.out or "0 had to be embedded" in done.out
    assert "kept as float16" in succeeded(act("stats", "index.vectors=float16")).out.replace("\n", " ")


def test_the_graph_is_rebuilt_with_other_options(act: Act) -> None:
    succeeded(act("rebuild_graph", "graph=reference"))
    assert "ReferenceGraphOptions" in succeeded(act("stats", "graph=reference")).out
    assert "ReferenceGraphOptions" in act("stats", "graph=default").error


@pytest.mark.slow
def test_what_failed_is_listed_warned_of_and_retried(
    act: Act, fork_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    docs = json.loads((small / "openie.json").read_text("utf-8"))["docs"]
    (tmp_path / "some.json").write_text(json.dumps({"docs": docs[:4]}), encoding="utf-8")
    here = f"index.path={tmp_path / 'partial'}"
    some = f"extractor.path={tmp_path / 'some.json'}"
    done = fork_script("index", here, "action=add", "on_error=fail", *stated, some)
    assert done.error.startswith("ExtractionError")
    done = fork_script("index", here, "action=add", *stated, some)
    assert done.status == 0
    assert "warning: 3 passages could not be extracted" in done.err
    assert done.err.count("some.json has no such passage") == 3
    runtime = part(stated)
    assert "failed 3 passages" in fork_script("index", here, "action=stats", *runtime).out
    full = part(stated, "extractor")
    assert "3 to extract again" in fork_script("index", here, "action=retry", "preview=true", *full).out
    done = succeeded(fork_script("index", here, "action=retry", *full))
    assert shown(done)["passages"] == "3 extracted, 0 of them failed"
    assert shown(fork_script("index", here, "action=stats", *runtime))["facts"] == "7"
    done = succeeded(fork_script("index", here, "action=reextract", *full))
    assert shown(done)["passages"] == "7 extracted, 0 of them failed"
    assert (
        "no extraction was made by 'x'"
        in act("reextract", "reextract.producer=x", groups=["extractor"]).error
    )


@pytest.mark.slow
def test_what_is_exported_can_be_imported(
    act: Act, fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    done = succeeded(act("export", f"export.path={path}", "export.format=upstream"))
    assert f"written {path}" in done.out
    assert "exists already" in act("export", f"export.path={path}", "export.format=upstream").error
    succeeded(act("export", f"export.path={path}", "export.format=upstream", "export.overwrite=true"))
    copy = f"index.path={tmp_path / 'copy'}"
    done = fork_script("index", copy, "action=import", f"import.path={path}", *part(stated, "embedder"))
    assert shown(succeeded(done))["facts"] == "7 added"
    ours, theirs = shown(act("stats")), shown(fork_script("index", copy, "action=stats", *part(stated)))
    for name in ("passages", "phrases", "facts", "statements", "synonyms", "edges"):
        assert ours[name] == theirs[name]
    succeeded(act("export", f"export.path={tmp_path / 'tables'}"))
    assert (tmp_path / "tables" / "facts.parquet").is_file()
    succeeded(
        act("export", f"export.path={tmp_path / 'g.graphml'}", "export.format=graphml", "export.texts=true")
    )
    assert "west coast of Norway" in (tmp_path / "g.graphml").read_text("utf-8")


@pytest.mark.parametrize("retriever", ["hipporag", "dense", "bm25"])
def test_a_directory_gives_the_rankings_of_a_memory_and_evaluating_builds_nothing(
    fork_script: Run, stated: list[str], index: Path, tmp_path: Path, retriever: str
) -> None:
    asked = [f"retriever={retriever}", *part(stated, "dataset")]
    succeeded(fork_script("evaluate", *stated, *asked, f"hydra.run.dir={tmp_path / 'memory'}"))
    before = bytes_of(index)
    for number, read_only in enumerate(("false", "true")):
        folder = tmp_path / str(number)
        where = [f"index.path={index}", f"index.read_only={read_only}", f"hydra.run.dir={folder}"]
        done = succeeded(fork_script("evaluate", *asked, *where))
        assert "nothing was built" in done.out
        assert "indexed in" not in done.out
        assert predictions(folder) == predictions(tmp_path / "memory")
    assert bytes_of(index) == before
    metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert metrics["index"]["dropped"] == {"wrong_arity": 1}
    assert metrics["index"]["path"] == str(index)
    assert "index" not in metrics["seconds"]


def test_evaluating_warns_of_passages_that_the_index_lacks(
    act: Act, fork_script: Run, stated: list[str], index: Path, tmp_path: Path
) -> None:
    with HippoRAG.open(index, read_only=True) as memory:
        (bergen,) = [passage.id for passage in memory.index.passages if passage.text == BERGEN]
    succeeded(act("remove", f"remove.passage_ids=[{bergen}]"))
    where = [f"index.path={index}", f"hydra.run.dir={tmp_path / 'run'}"]
    done = fork_script("evaluate", *part(stated, "dataset"), *where)
    assert done.status == 0
    assert done.err.startswith("warning: 1 of 7 passages of the corpus are not in the index")


def test_retrieve_makes_the_index_once_and_then_needs_no_dataset(
    fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "index"
    where = [f"index.path={path}", QUESTION, f"hydra.run.dir={tmp_path / 'run'}"]
    assert "dataset.path is not set" in fork_script("retrieve", *part(stated, "extractor"), *where).error
    assert not path.exists()
    succeeded(fork_script("retrieve", *stated, "retriever=bm25", *where))
    rankings = tmp_path / "run" / "rankings.jsonl"
    made = bytes_of(path)
    done = succeeded(fork_script("retrieve", *part(stated), *where))
    assert "nothing was built" in done.out
    assert "route graph" in done.out
    found = json.loads(rankings.read_text("utf-8"))
    succeeded(fork_script("retrieve", *stated, QUESTION, f"hydra.run.dir={tmp_path / 'run'}"))
    assert json.loads(rankings.read_text("utf-8")) == found
    done = fork_script("explain", *part(stated), *where, "png=false", "html=false")
    assert "through northwind press" in succeeded(done).out
    assert bytes_of(path) == made


def test_an_index_whose_making_was_interrupted_is_filled(
    fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "index"
    HippoRAG.open(path, embedder=HashingEmbedder()).close()
    done = fork_script(
        "retrieve", *stated, f"index.path={path}", QUESTION, f"hydra.run.dir={tmp_path / 'run'}"
    )
    assert "route graph" in succeeded(done).out


def test_index_options_without_a_directory_are_not_ignored(fork_script: Run, stated: list[str]) -> None:
    error = fork_script("retrieve", *stated, QUESTION, "index.read_only=true").error
    assert "index.read_only is for an index in a directory; give index.path=DIR" in error


NO_MODEL: dict[str, list[str]] = {
    "stats": [],
    "check": [],
    "remove": ["remove.source_ids=[s]"],
    "compact": [],
    "export": ["export.path={tmp}/out"],
    "rebuild_graph": ["graph=reference"],
}


@pytest.mark.parametrize("action", NO_MODEL)
def test_actions_that_need_no_model_work_where_none_can_be_built(
    fork_script: Run, stated: list[str], small: Path, tmp_path: Path, action: str
) -> None:
    """The index does not say how its embedder is built."""
    path = tmp_path / "index"
    extractor = StoredExtractor(path=small / "openie.json")
    with HippoRAG.open(path, embedder=HashingEmbedder(), extractor=extractor) as memory:
        memory.add([BERGEN])
    source = memory.index.passages[0].id
    overrides = [o.format(tmp=tmp_path).replace("[s]", f"[{source}]") for o in NO_MODEL[action]]
    run = ["index", f"index.path={path}", *part(stated)]
    succeeded(fork_script(*run, f"action={action}", *overrides))
    error = fork_script(*run, "action=add", *part(stated, "dataset", "extractor")).error
    assert "does not say how its embedder is built; state the embedder (embedder=…" in error


@pytest.mark.slow
@pytest.mark.parametrize(("action", "status"), [("stats", 0), ("remove", 1), ("compact", 0)])
def test_no_model_library_is_imported_where_no_model_is_needed(
    tmp_path: Path, action: str, status: int
) -> None:
    path = tmp_path / "index"
    HippoRAG.open(path, embedder=packaged_minilm()).close()
    program = (
        "import runpy, sys\n"
        f"sys.argv = ['scripts/index.py', 'index.path={path}', 'action={action}', *sys.argv[1:]]\n"
        "try:\n    runpy.run_path('scripts/index.py', run_name='__main__')\n"
        "except SystemExit as end:\n    print('status', end.code)\n"
        "print([m for m in ('transformers', 'sentence_transformers') if m in sys.modules])\n"
    )
    more = ["remove.texts=[a]"] if action == "remove" else []
    command = [sys.executable, "-c", program, *more, f"runtime.cache_dir={tmp_path / 'cache'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-2:] == [f"status {status}", "[]"], done.stdout + done.stderr


def test_help_shows_every_action(fork_script: Run) -> None:
    done = succeeded(fork_script("index", "--help"))
    for action in ("add", "update", "remove", "stats", "check", "repair", "compact", "export", "import"):
        assert f"  action={action} " in done.out
    assert "python scripts/index.py index.path=DIR action=ACTION" in done.out
    assert "chunker: markdown, tokens, whole" in done.out


def test_every_key_is_read_by_an_action() -> None:
    import runpy

    module = runpy.run_path(str(ROOT / "scripts" / "index.py"))
    read = module["_EVERY"].union(*(action.reads for action in module["ACTIONS"].values()))
    # A model of extraction's own is a key once it is chosen.
    assert read == {str(key) for key in compose("index", ["llm@extraction_llm=openai"])} | {"hydra"}
