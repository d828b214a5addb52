"""ask and explain."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import QUESTION, Call

OFF = ["runtime.cache=false", "runtime.device=cpu"]
PASSAGE = {"rank", "score", "passage_id", "title", "text", "sources"}
SOURCE = {"source_id", "position", "start", "end", "metadata"}
USAGE = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cached_calls": 0}


def replies(path: Path, reply: str) -> list[str]:
    """The settings of a model that says `reply` whatever it is asked."""
    path.write_text(json.dumps([{"reply": reply}]), encoding="utf-8")
    return ["--llm", "scripted", *OFF, "llm=scripted", f"llm.replies={path}"]


def test_ask_answers_without_a_model_and_says_so(call: Call, index: Path) -> None:
    done = call("ask", QUESTION, "--index", index, *OFF)
    lines = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert lines[0] == call("ask", QUESTION, "--index", index, "--json", *OFF).json["answer"] != ""
    assert "no language model was used; route graph" in lines[1]
    assert "notes/ada.md › Ada Vale" in lines
    # The same text stands in two files.
    assert lines.index("notes/places/bergen.md › Bergen") + 1 == lines.index("notes/places/same.md › Bergen")


def test_ask_gives_machines_the_answer_with_every_passage_that_was_found(call: Call, index: Path) -> None:
    told = call("ask", QUESTION, "--index", index, "--json", "--top-k", "2", *OFF, "reader.qa_top_k=1").json
    assert set(told) == {
        *("question", "answer", "method", "flag", "reason", "score", "citations", "passages"),
        *("passages_left_out", "route", "usage"),
    }
    assert (told["question"], told["flag"], told["usage"]) == (QUESTION, "", USAGE)
    assert [p.keys() for p in told["passages"]] == [PASSAGE | {"read"}] * 2
    assert [p["read"] for p in told["passages"]] == [True, False]
    assert told["citations"] == [told["passages"][0]["passage_id"]]
    source = told["passages"][0]["sources"][0]
    assert set(source) == SOURCE
    assert (source["source_id"], source["metadata"]["path"]) == ("notes/ada.md", "ada.md")


def test_passages_alone_are_shown_whole(call: Call, index: Path) -> None:
    arguments = ("ask", QUESTION, "--index", index, "--passages-only", "--top-k", "1")
    shown = call(*arguments, *OFF)
    assert "# Ada Vale\n\nAda Vale founded Northwind Press in Bergen.\n" in shown.out
    assert "nothing was read" in shown.out
    told = call(*arguments, "--json", *OFF).json
    assert set(told) == {"question", "route", "reason", "passages", "usage"}
    assert [p["text"] for p in told["passages"]] == [
        "# Ada Vale\n\nAda Vale founded Northwind Press in Bergen."
    ]


def test_a_model_that_is_named_reads(call: Call, index: Path, tmp_path: Path) -> None:
    settings = replies(tmp_path / "replies.json", "Thought: it is in Bergen [1].\nAnswer: Norway")
    told = call("ask", QUESTION, "--index", index, "--json", *settings).json
    assert told["answer"] == "Norway"
    assert told["usage"]["calls"] == 1
    assert "scripted" in told["method"]


def test_an_empty_index_has_no_answer_and_says_why(call: Call, index: Path) -> None:
    sources = ["notes/ada.md", "notes/places/bergen.md", "notes/places/same.md"]
    assert call("remove", *sources, "--index", index, "--yes").status == 0
    done = call("ask", QUESTION, "--index", index, *OFF)
    assert (done.status, done.out.splitlines()[0]) == (0, "–")
    assert "no passage was found" in done.err
    told = call("ask", QUESTION, "--index", index, "--json", *OFF).json
    assert (told["answer"], told["passages"], told["route"]) == ("", [], "none:empty_index")


def test_explain_shows_what_carried_the_question(call: Call, index: Path) -> None:
    done = call("explain", QUESTION, "--index", index, *OFF)
    assert done.status == 0
    for part in ("route graph", "facts kept", "northwind press", "seeds", "through bergen"):
        assert part in done.out


def test_explain_gives_machines_the_sub_graph_and_the_files_it_wrote(
    call: Call, index: Path, tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    told = call("explain", QUESTION, "--index", index, "--json", "--html", page, *OFF).json
    keys = ("question", "route", "why", "linked", "facts", "passages", "nodes", "edges", "files")
    assert set(told) == {*keys}
    assert set(told["passages"][0]) == PASSAGE | {"restart", "through", "started_by"}
    assert {node["kind"] for node in told["nodes"]} == {"phrase", "passage"}
    ids = {node["id"] for node in told["nodes"]}
    assert all({edge["source"], edge["target"]} <= ids for edge in told["edges"])
    assert told["files"] == [str(page)]
    assert QUESTION in page.read_text("utf-8")


@pytest.mark.slow
def test_explain_draws_a_picture(call: Call, index: Path, tmp_path: Path) -> None:
    picture = tmp_path / "why.png"
    done = call("explain", QUESTION, "--index", index, "--png", picture, *OFF)
    assert done.out.splitlines()[-1] == f"written to {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_a_folder_is_one_line(call: Call, index: Path, tmp_path: Path) -> None:
    where = tmp_path / "nowhere" / "why.html"
    error = call("explain", QUESTION, "--index", index, "--html", where, *OFF).error
    assert f"{where} cannot be written" in error
    assert "name a file in a folder that exists" in error


@pytest.mark.parametrize("command", ["ask", "explain"])
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([" "], "is empty"),
        ([QUESTION, "retriever=best"], "retriever/best"),
        ([QUESTION, "seeding.nonsense=1"], "seeding.nonsense"),
        ([QUESTION, "extractor=spacy"], "does not read it"),
        ([QUESTION, "embedder=hashing", "embedder.dim=7"], "dim=7"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    call: Call, index: Path, command: str, arguments: list[Any], error: str
) -> None:
    question, *settings = arguments
    assert error in call(command, question, "--index", index, *settings, *OFF).error
