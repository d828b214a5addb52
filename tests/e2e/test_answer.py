"""scripts/answer.py, and every role of a language model through the other scripts, with a scripted one."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXTRACTED, ROOT
from .scripted import bytes_of, calls, write_rules

Run = Callable[..., Any]
QUESTION = "In which country was Northwind Press founded?"
ASK = f"question='{QUESTION}'"


@pytest.fixture(scope="module")
def index(fork_script: Run, stated: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the small corpus with stored extractions."""
    path = tmp_path_factory.mktemp("answer") / "index"
    done = fork_script("index", f"index.path={path}", "action=add", *stated)
    assert done.status == 0, done.err
    return path


@pytest.fixture
def scripted(tmp_path: Path) -> list[str]:
    """The overrides of a scripted model, with a cache of its own."""
    rules = write_rules(tmp_path / "rules.json", EXTRACTED)
    return ["llm=scripted", f"llm.replies={rules}", f"runtime.cache_dir={tmp_path / 'cache'}"]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def test_one_question(fork_script: Run, index: Path, scripted: list[str], tmp_path: Path) -> None:
    run = [f"index.path={index}", *scripted, ASK, f"hydra.run.dir={tmp_path / 'out'}"]
    done = fork_script("answer", *run)
    assert (done.status, done.err) == (0, "")
    assert "Norway" in done.out
    assert "cited" in done.out
    assert "route graph" in done.out
    assert calls(done, "reading") == (1, 0)
    (row,) = rows_of(tmp_path / "out" / "answers.jsonl")
    assert (row["question"], row["answer"], row["flag"]) == (QUESTION, "Norway", "")
    assert len(row["passages"]) == 5
    cited = [passage for passage in row["passages"] if passage["id"] in row["citations"]]
    assert [passage["text"].partition("\n")[0] for passage in cited] == ["Bergen"]
    assert cited[0]["sources"][0]["metadata"] == {"title": "Bergen"}
    assert calls(fork_script("answer", *run), "reading") == (0, 1)
    assert calls(fork_script("answer", *run, "runtime.cache=false"), "reading") == (1, 0)


def test_all_roles_share_a_model_and_show_what_they_took(
    fork_script: Run, index: Path, scripted: list[str], tmp_path: Path
) -> None:
    (tmp_path / "questions.txt").write_text(f"{QUESTION}\n\nWho maps glaciers?\n", encoding="utf-8")
    done = fork_script(
        "answer",
        f"index.path={index}",
        *scripted,
        f"questions.path={tmp_path / 'questions.txt'}",
        "linker=llm",
        "fact_filter=llm",
        "ircot=on",
        f"hydra.run.dir={tmp_path / 'out'}",
    )
    assert (done.status, done.err) == (0, "")
    assert calls(done, "linking") == (2, 0)
    assert calls(done, "filter") == (2, 0)
    assert calls(done, "reading") == (4, 0), "a thought and an answer for each"
    rows = rows_of(tmp_path / "out" / "answers.jsonl")
    assert [row["id"] for row in rows] == ["0", "1"]
    assert rows[0]["retrieval"]["thoughts"] == ["So the answer is: Norway"]
    assert rows[0]["retrieval"]["usage"]["calls"] == 3


def test_a_role_has_a_model_of_its_own(
    fork_script: Run, index: Path, scripted: list[str], tmp_path: Path
) -> None:
    (tmp_path / "none.json").write_text(json.dumps([{"reply": {"useful": []}}]), encoding="utf-8")
    done = fork_script(
        "answer",
        f"index.path={index}",
        *scripted,
        "llm@filter_llm=scripted",
        f"filter_llm.replies={tmp_path / 'none.json'}",
        "fact_filter=llm",
        ASK,
        f"hydra.run.dir={tmp_path / 'out'}",
    )
    assert (done.status, done.err) == (0, "")
    assert "graph:filter_kept_none" in done.out
    assert "Norway" in done.out


def test_no_model_is_needed_without_one(fork_script: Run, index: Path, tmp_path: Path) -> None:
    run = [f"index.path={index}", ASK, "reader=extractive", f"hydra.run.dir={tmp_path / 'out'}"]
    done = fork_script("answer", *run, f"runtime.cache_dir={tmp_path}")
    assert (done.status, done.err) == (0, "")
    assert "no language model was used" in done.out
    assert not list(tmp_path.glob("*replies*"))


def test_streaming_on_a_terminal_shows_the_reply_as_it_comes(
    index: Path, scripted: list[str], tmp_path: Path
) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "scripts/answer.py", f"index.path={index}", *scripted, ASK]
    with subprocess.Popen(
        [*command, f"hydra.run.dir={tmp_path / 'out'}"], cwd=ROOT, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while piece := os.read(leader, 4096):
                shown += piece
        except OSError:
            # How a terminal ends.
            pass
        os.close(leader)
    assert process.returncode == 0, shown.decode()
    # The raw reply, which is nowhere shown without a terminal.
    assert "Bergen lies in Norway.\r\nAnswer: Norway" in shown.decode()


ROLES = ["linker=llm", "fact_filter=llm", "ircot=on"]


@pytest.mark.parametrize(
    ("script", "overrides", "named"),
    [
        ("answer", [ASK, *ROLES], {"linking": 3, "filter": 3, "thoughts": 2, "reading": 1}),
        ("retrieve", [ASK, *ROLES], {"linking": 3, "filter": 3, "thoughts": 2}),
        ("explain", [ASK, "fact_filter=llm"], {"filter": 1}),
        ("evaluate", ["dataset.path={small}", "reader=llm"], {"reading": 3}),
        ("retrieve", [ASK], {}),
    ],
)
def test_a_dry_run_counts_asks_and_writes_nothing(
    fork_script: Run,
    index: Path,
    small: Path,
    scripted: list[str],
    tmp_path: Path,
    script: str,
    overrides: list[str],
    named: dict[str, int],
) -> None:
    (tmp_path / "no_rules.json").write_text("[]", encoding="utf-8")
    outputs = ROOT / "outputs" / script
    before, at = bytes_of(tmp_path), bytes_of(index)
    there = sorted(outputs.iterdir()) if outputs.exists() else []
    filled = [override.format(small=small) for override in overrides]
    rules = f"llm.replies={tmp_path / 'no_rules.json'}"
    done = fork_script(script, f"index.path={index}", *scripted, rules, *filled, "dry_run=true")
    assert (done.status, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert {
        row[0]: int(row[1]) for row in rows if row and row[0] in ("linking", "filter", "thoughts", "reading")
    } == named
    assert ("no language model would be asked" in done.out) == (not named)
    assert bytes_of(tmp_path) == before
    assert bytes_of(index) == at
    assert (sorted(outputs.iterdir()) if outputs.exists() else []) == there


def test_a_dry_run_of_an_index_that_is_not_there_counts_its_extractions(
    fork_script: Run, small: Path, scripted: list[str], tmp_path: Path
) -> None:
    common = [f"index.path={tmp_path / 'new'}", f"dataset.path={small}", "extractor=openie", *scripted]
    added = fork_script("index", *common, "action=add", "embedder=hashing", "dry_run=true")
    assert (added.status, added.err) == (0, "")
    assert "14 to extract" in added.out
    assert "at most 28,672 of replies" in added.out
    asked = fork_script("retrieve", *common, ASK, "dry_run=true")
    assert (asked.status, asked.err) == (0, "")
    assert [line.split()[1] for line in asked.out.splitlines() if "extraction" in line] == ["14"]
    assert not (tmp_path / "new").exists()


def test_an_index_counts_what_its_extractions_took_and_a_budget_stops_it(
    fork_script: Run, small: Path, scripted: list[str], tmp_path: Path
) -> None:
    common = [
        "index",
        f"index.path={tmp_path / 'new'}",
        f"dataset.path={small}",
        "extractor=openie",
        "extractor.block_size=1",
        "embedder=hashing",
        *scripted,
        "runtime.cache=false",
        "action=add",
    ]
    stopped = fork_script(*common, "budget.calls=6")
    assert stopped.status == 1
    assert "6 of 6 calls spent" in stopped.err
    assert "run again; what was had is kept" in " ".join(stopped.err.split())
    done = fork_script(*common)
    assert done.status == 0, done.err
    # Three passages were paid for and are staged; what this run took is for the other four.
    assert calls(done, "model") == (8, 0)


def test_evaluate_reads_and_scores(
    fork_script: Run, index: Path, small: Path, scripted: list[str], tmp_path: Path
) -> None:
    run = [f"index.path={index}", f"dataset.path={small}", *scripted, f"hydra.run.dir={tmp_path / 'out'}"]
    done = fork_script("evaluate", *run, "reader=llm", "ircot=on")
    assert (done.status, done.err) == (0, "")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text("utf-8"))
    assert metrics["em"] == metrics["f1"] == pytest.approx(1 / 3)
    assert metrics["usage"]["reading"]["calls"] == 6
    rows = rows_of(tmp_path / "out" / "predictions.jsonl")
    assert [row["answer"] for row in rows] == ["Norway"] * 3
    assert "answers: exact match 0.3333" in done.out
    assert calls(done, "reading") == (6, 0)


def test_compacting_erases_the_replies_to_removed_passages(
    fork_script: Run, small: Path, scripted: list[str], tmp_path: Path
) -> None:
    path = [f"index.path={tmp_path / 'new'}", *scripted]
    add = ["action=add", f"dataset.path={small}", "extractor=openie", "embedder=hashing"]
    assert fork_script("index", *path, *add).status == 0
    asked = ["fact_filter=llm", ASK, f"hydra.run.dir={tmp_path / 'out'}"]
    assert fork_script("answer", *path, *asked).status == 0
    cache = tmp_path / "cache"

    def holders(text: bytes) -> list[str]:
        return sorted(p.name for p in cache.iterdir() if text in p.read_bytes().lower())

    assert holders(b"bergen lies on") == ["replies.sqlite"]
    assert "derived_replies.sqlite" in holders(b"northwind press")
    texts = [f"{title}\n{text}" for title, text in EXTRACTED if "Bergen" in title + text]
    quoted = "[" + ", ".join(f"'{text}'" for text in texts) + "]"
    kept = [f"index.path={tmp_path / 'new'}", f"runtime.cache_dir={cache}"]
    done = fork_script("index", *kept, "action=remove", f"remove.texts={quoted}")
    assert done.status == 0, done.err
    done = fork_script("index", *kept, "action=compact")
    assert (done.status, done.err) == (0, "")
    assert "cached replies" in done.out
    assert holders(b"bergen lies on") == []
    assert "derived_replies.sqlite" not in holders(b"northwind press")
    assert holders(b"glaciers cover half") == ["replies.sqlite"], "others stay"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "one of question and questions.path must be set"),
        ([ASK, "questions.path=x"], "one of question and questions.path must be set"),
        (["questions.path=nowhere.txt"], "there is no file of questions nowhere.txt"),
        ([ASK], "llm.model is not set; give it as llm.model=VALUE, or choose another llm: azure, bedrock"),
        (
            [ASK, "reader=extractive", "fact_filter=llm", "llm@filter_llm=openai"],
            "filter_llm.model is not set; give it as filter_llm.model=VALUE, or choose another llm@filter",
        ),
        ([ASK, "+filter_llm.model=x"], "filter_llm has no model of its own yet; choose its kind first"),
        ([ASK, "llm.model=m", "reader.max_tokens=many"], "reader could not be built from"),
        ([ASK, "llm.model=m", "budget.tokens=lots"], "budget could not be built from"),
        ([ASK, "llm.model=m", "top_k=0"], "top_k must be a whole number of at least 1, got 0"),
    ],
)
def test_what_is_wrong_is_one_line(
    fork_script: Run, index: Path, tmp_path: Path, overrides: list[str], message: str
) -> None:
    run = [f"index.path={index}", f"hydra.run.dir={tmp_path / 'out'}", "runtime.cache=false"]
    done = fork_script("answer", *run, *overrides)
    assert done.status == 1
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["llm.api_key_env=NO_SUCH_KEY"], "the environment variable NO_SUCH_KEY is not set"),
        (["llm.base_url=http://localhost:9/v1", "llm.max_retries=0"], "cannot be reached"),
    ],
)
def test_a_backend_that_cannot_be_asked_is_one_line(
    fork_script: Run, index: Path, tmp_path: Path, overrides: list[str], message: str
) -> None:
    run = [f"index.path={index}", f"hydra.run.dir={tmp_path / 'out'}", "runtime.cache=false", "llm.model=m"]
    done = fork_script("answer", *run, ASK, *overrides)
    assert done.status == 1
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out" / "answers.jsonl").exists()
