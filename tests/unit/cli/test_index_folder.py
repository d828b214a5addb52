import json
from pathlib import Path

import pytest

from .conftest import Call

FILE = {
    *("path", "source_id", "status", "reason", "passages", "passages_new", "passages_removed"),
    "passages_failed",
}


def files(told: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {file["path"]: file["status"] for file in told["files"]}


def test_a_dry_run_says_what_would_be_done_and_makes_nothing(
    call: Call, notes: Path, made: list[str], tmp_path: Path
) -> None:
    done = call("index-folder", notes, "--index", tmp_path / "index", "--dry-run", *made)
    assert (done.status, done.err) == (0, "")
    for part in (
        "3 added, 1 skipped",
        "2 new",
        "0 to extract",
        "stored",
        "hashing",
        "dry run: nothing was changed",
    ):
        assert part in done.out
    assert "added      ada.md  (1 passage, 1 new)" in done.out
    assert "skipped    zeros.txt  (it holds" in done.out
    assert not (tmp_path / "index").exists()


def test_a_sync_reports_every_file(call: Call, notes: Path, made: list[str], tmp_path: Path) -> None:
    index, settings = tmp_path / "index", ["--name", "notes", "--json", *made]
    told = call("index-folder", notes, "--index", index, *settings).json
    assert set(told) == {
        *("dry_run", "root", "root_id", "counts", "files", "unmatched", "plan", "usage", "stopped")
    }
    assert [file.keys() for file in told["files"]] == [FILE] * 4
    assert files(told) == {
        "ada.md": "added",
        "places/bergen.md": "added",
        "places/same.md": "added",
        "zeros.txt": "skipped",
    }
    assert (told["dry_run"], told["root_id"], told["unmatched"], told["stopped"]) == (False, "notes", 1, "")
    assert told["plan"]["passages_new"] == 2

    (notes / "ada.md").write_text("# Ada Vale\n\nAda Vale sold Northwind Press.\n", encoding="utf-8")
    (notes / "places/same.md").unlink()
    told = call("index-folder", notes, "--index", index, *settings).json
    assert files(told)["ada.md"] == "replaced"
    assert files(told)["places/same.md"] == "missing"
    told = call("index-folder", notes, "--index", index, "--prune", *settings).json
    assert told["counts"] == {"removed": 1, "retried": 1, "skipped": 1, "unchanged": 1}


def test_the_report_for_people_counts_what_is_unchanged_and_lists_the_rest(
    call: Call, index: Path, notes: Path, made: list[str]
) -> None:
    (notes / "new.txt").write_text("Tove Lund maps glaciers.", encoding="utf-8")
    (notes / "ada.md").unlink()
    done = call("index-folder", notes, "--index", index, "--name", "notes", *made)
    assert done.status == 0
    assert "added      new.txt  (1 passage, 1 new, 1 could not be extracted)" in done.out
    assert "missing    ada.md" in done.out
    assert "--prune takes them out" in done.out
    assert "bergen.md" not in done.out
    assert "2 unchanged" in done.out
    assert "1 passage could not be extracted" in done.err


def test_globs_choose_files(call: Call, notes: Path, made: list[str], tmp_path: Path) -> None:
    arguments = ("--index", tmp_path / "index", "--json", "--dry-run", "--glob", "places/*", "--glob", "z*")
    told = call("index-folder", notes, *arguments, *made).json
    assert [*files(told)] == ["places/bergen.md", "places/same.md", "zeros.txt"]


@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_much_to_extract_is_refused_where_nobody_can_be_asked(
    call: Call, notes: Path, made: list[str], tmp_path: Path, json_: list[str]
) -> None:
    arguments = ["index-folder", notes, "--index", tmp_path / "index", *json_, *made]
    done = call(*arguments, "serve.confirm_above=1")
    assert done.status == 2
    assert done.err.splitlines()[-1].startswith("hipporag-torch index-folder: 2 passages would be extracted")
    assert "add --yes" in done.err
    assert "--dry-run" in done.err
    assert json_ == [] or done.out == ""
    assert not (tmp_path / "index").exists()
    assert call(*arguments, "--yes", "serve.confirm_above=1").status == 0
    # Nothing is left to extract, so there is nothing to ask.
    assert call(*arguments, "serve.confirm_above=0").status == 0


def test_no_question_is_asked_up_to_fifty_passages(call: Call, made: list[str], tmp_path: Path) -> None:
    folder, index = tmp_path / "many", tmp_path / "index"
    folder.mkdir()
    for number in range(51):
        (folder / f"{number}.md").write_text(f"Note number {number}.", encoding="utf-8")
    arguments = ["index-folder", folder, "--index", index, *made]
    assert "51 passages would be extracted" in call(*arguments).err
    assert call(*arguments, "serve.confirm_above=null", "budget.calls=null", "--dry-run").status == 0
    (folder / "50.md").unlink()
    assert call(*arguments, "--dry-run", "--json").json["plan"]["passages_new"] == 50


def test_a_model_shows_its_calls_before_they_are_made(
    call: Call, notes: Path, made: list[str], tmp_path: Path
) -> None:
    rules = tmp_path / "replies.json"
    rules.write_text(json.dumps([{"reply": "{}"}]), encoding="utf-8")
    settings = ["embedder=hashing", "runtime.cache=false", "llm=scripted", f"llm.replies={rules}"]
    arguments = ["index-folder", notes, "--index", tmp_path / "index", "--dry-run", "--llm", "scripted"]
    plan = call(*arguments, "--json", *settings).json["plan"]
    assert plan["usage"]["calls"] == 4
    assert plan["usage"]["prompt_tokens"] > 100
    assert plan["extractor"].startswith("openie:scripted")
    done = call(*arguments, *settings)
    assert "model calls   4 to extract" in done.out
    assert "openie:scripted" in done.out


def test_a_spent_budget_ends_with_status_1_and_the_same_command_goes_on(
    call: Call, notes: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "replies.json"
    reply = json.dumps({"named_entities": ["Bergen"], "triples": [["Bergen", "lies in", "Norway"]]})
    rules.write_text(json.dumps([{"reply": reply}]), encoding="utf-8")
    settings = ["embedder=hashing", f"runtime.cache_dir={tmp_path / 'cache'}", "llm=scripted"]
    arguments = ["index-folder", notes, "--index", tmp_path / "index", "--llm", "scripted", "--json"]
    stopped = call(*arguments, *settings, f"llm.replies={rules}", "budget.calls=2")
    assert stopped.status == 1
    told = json.loads(stopped.out)
    assert "budget" in told["stopped"]
    assert files(told)["ada.md"] == "added"
    assert "left" in files(told).values()
    told = call(*arguments, *settings, f"llm.replies={rules}").json
    assert (files(told)["ada.md"], told["usage"]["calls"], told["stopped"]) == ("unchanged", 2, "")


def test_a_folder_without_texts_makes_no_index(call: Call, made: list[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    told = call("index-folder", tmp_path / "empty", "--index", tmp_path / "index", "--json", *made).json
    assert (told["files"], told["counts"]) == ([], {})
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "InputError: the folder"),
        (["{notes}", "--glob", "../*.md"], "must stay inside the folder"),
        (["{notes}", "--name", "a/b"], "must not hold a '/'"),
        (["{notes}", "serve.confirm_above=-1"], "serve.confirm_above must be 0"),
        (["{notes}", "serve.port=80"], "does not read it"),
        (["{notes}", "reader=llm"], "reader is set, but hipporag-torch index-folder does not read it"),
        (["{notes}", "chunker=markdown", "chunker.max_words=0"], "chunker.max_words"),
    ],
)
def test_what_cannot_be_indexed_is_one_line(
    call: Call, notes: Path, made: list[str], tmp_path: Path, arguments: list[str], error: str
) -> None:
    path, *options = [argument.format(notes=notes) for argument in arguments]
    flags = [option for option in options if "=" not in option]
    settings = [option for option in options if "=" in option]
    assert error in call("index-folder", path, "--index", tmp_path / "index", *flags, *made, *settings).error
