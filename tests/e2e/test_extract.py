"""scripts/extract.py with a scripted model: whole, in shards, interrupted, and what takes its file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXTRACTED
from .scripted import bytes_of, calls, write_rules

Run = Callable[..., Any]


@pytest.fixture
def extract(fork_script: Run, small: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the script on the small corpus; the output is out/e.json unless stated."""
    rules = write_rules(tmp_path / "rules.json", EXTRACTED)
    (tmp_path / "out").mkdir()

    def run(*overrides: str) -> Any:
        stated = [
            f"dataset.path={small}",
            "llm=scripted",
            f"llm.replies={rules}",
            "runtime.cache=false",
            f"output={tmp_path / 'out' / 'e.json'}",
        ]
        return fork_script("extract", *stated, *overrides)

    return run


def docs_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text("utf-8"))["docs"]


def test_a_corpus_becomes_a_file_and_failures_are_listed(extract: Any, tmp_path: Path) -> None:
    done = extract()
    assert done.status == 0, done.err
    assert "6 extracted, 1 failed" in done.out
    assert calls(done, "extraction") == (14, 0)
    assert "1 passage could not be extracted" in done.err
    texts = [f"{title}\n{text}" for title, text in EXTRACTED]
    docs = docs_of(tmp_path / "out" / "e.json")
    assert sorted(doc["passage"] for doc in docs) == sorted(text for text in texts if "ferry" not in text)
    assert [doc["idx"] for doc in docs] == sorted(doc["idx"] for doc in docs)
    (failed,) = (tmp_path / "out" / "e.failed.jsonl").read_text("utf-8").splitlines()
    assert json.loads(failed)["reply"] == "Sorry?"


def test_running_again_tries_what_failed_and_nothing_else(extract: Any, tmp_path: Path) -> None:
    first = extract()
    output = (tmp_path / "out" / "e.json").read_bytes()
    again = extract()
    assert (first.status, again.status) == (0, 0)
    assert calls(again, "extraction") == (2, 0)
    assert "1 of these tried now, 6 finished before" in again.out
    assert (tmp_path / "out" / "e.json").read_bytes() == output


def test_a_budget_stops_it_and_the_next_run_goes_on(extract: Any, tmp_path: Path) -> None:
    stopped = extract("budget.calls=5", "extractor.block_size=2")
    assert stopped.status == 1
    assert "BudgetError" in stopped.err
    assert "5 of 5 calls spent" in stopped.err
    assert "2 of 7 passages are extracted and kept" in stopped.err
    assert calls(stopped, "extraction") == (5, 0)
    assert not (tmp_path / "out" / "e.json").exists()
    done = extract("extractor.block_size=2")
    assert done.status == 0, done.err
    assert calls(done, "extraction")[0] == 10
    assert "2 finished before" in done.out


def test_shards_merge_to_the_bytes_of_the_whole(extract: Any, tmp_path: Path) -> None:
    whole = extract()
    shards = [extract(f"shard={number}/3") for number in (1, 2, 3)]
    assert [done.status for done in (whole, *shards)] == [0] * 4
    pattern = tmp_path / "out" / "e.*-of-3.json"
    merged = extract(f"merge='{pattern}'", f"output={tmp_path / 'merged.json'}")
    assert merged.status == 0, merged.err
    assert (tmp_path / "merged.json").read_bytes() == (tmp_path / "out" / "e.json").read_bytes()
    assert (tmp_path / "merged.failed.jsonl").read_bytes() == (
        tmp_path / "out" / "e.failed.jsonl"
    ).read_bytes()
    (tmp_path / "out" / "e.2-of-3.json").unlink()
    lacking = extract(f"merge='{pattern}'", f"output={tmp_path / 'other.json'}")
    assert "of 3 shards, 2 are missing" in lacking.error


def test_its_file_is_indexed_without_a_model(
    extract: Any, fork_script: Run, small: Path, tmp_path: Path
) -> None:
    extract()
    path = tmp_path / "out" / "e.json"
    common = ["embedder=hashing", "runtime.cache=false"]
    stored = fork_script(
        "index",
        f"index.path={tmp_path / 'a'}",
        "action=add",
        f"dataset.path={small}",
        "extractor=stored",
        f"extractor.path={path}",
        *common,
    )
    imported = fork_script(
        "index", f"index.path={tmp_path / 'b'}", "action=import", f"import.path={path}", *common
    )
    for done in (stored, imported):
        assert done.status == 0, done.err
        assert re.search(r"facts +7 added", done.out)


def test_spacy_needs_no_model(fork_script: Run, small: Path, tmp_path: Path) -> None:
    output = tmp_path / "spacy.json"
    done = fork_script("extract", f"dataset.path={small}", "extractor=spacy", f"output={output}")
    assert (done.status, done.err) == (0, "")
    assert len(docs_of(output)) == 7


def test_a_dry_run_counts_and_writes_nothing(extract: Any, tmp_path: Path) -> None:
    before = bytes_of(tmp_path)
    done = extract("dry_run=true", "llm.prompt_price=10", "llm.completion_price=20")
    assert done.status == 0, done.err
    assert "7 to extract, 0 finished already" in done.out
    # Two calls of up to 2,048 tokens for each passage.
    assert "28,672" in done.out
    assert "money" in done.out
    assert bytes_of(tmp_path) == before
    extract()
    assert "1 to extract, 6 finished already" in extract("dry_run=true").out


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["shard=0/3"], "shard must be NUMBER/COUNT, such as 1/8 to 8/8, got '0/3'"),
        (["output=e.txt"], "output must be the name of a .json file, got 'e.txt'"),
        (["merge=nowhere.json"], "merge: there is no file nowhere.json"),
        (["budget.calls=-1"], "budget.calls must be at least 0, or null for any amount, got -1"),
        (["budget.money=1"], "budget.money is set, but the prices of scripted are not known"),
        (["dry_run=perhaps"], "dry_run must be true or false, got 'perhaps'"),
        (["output={small}/openie.json"], "openie.json exists already, and beside it no journal"),
    ],
)
def test_what_is_wrong_is_one_line(extract: Any, small: Path, overrides: list[str], message: str) -> None:
    assert message in extract(*[override.format(small=small) for override in overrides]).error
