"""Shards divide without rest, and merge to what they were."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.shards import OutputFiles, Shard, found_files, merge
from hipporag_torch.text import TextOptions


@given(st.lists(st.integers()), st.integers(1, 12))
def test_every_item_is_in_one_shard_and_none_is_larger_by_two(items: list[int], count: int) -> None:
    parts = [Shard(number, count).of(items) for number in range(1, count + 1)]
    assert sorted(item for part in parts for item in part) == sorted(items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "-1/3", "1/0", "1 / 3", 3])
def test_what_is_no_shard(text: Any) -> None:
    with pytest.raises(ConfigError, match="shard must be NUMBER/COUNT"):
        Shard.parse(text)


def written(path: Path, **docs: list[list[str]]) -> Path:
    rows = [{"passage": k, "extracted_entities": None, "extracted_triples": v} for k, v in docs.items()]
    path.write_text(json.dumps({"docs": rows}), encoding="utf-8")
    return path


def test_files_that_disagree_on_a_passage_are_not_merged(tmp_path: Path) -> None:
    a = written(tmp_path / "a.json", Ada=[["a", "b", "c"]], Tove=[])
    same = written(tmp_path / "b.json", Ada=[["a", "b", "c"]])
    other = written(tmp_path / "c.json", Ada=[["a", "b", "d"]])
    into = OutputFiles.at(tmp_path / "out.json", None)
    assert merge([a, same], into, TextOptions(), overwrite=False).num_docs == 2
    with pytest.raises(
        InputError, match=r"c.json and .*a.json have different extractions of the passage 'Ada'"
    ):
        merge([a, same, other], into, TextOptions(), overwrite=True)
    with pytest.raises(InputError, match="among the files to merge"):
        merge([a], OutputFiles(a), TextOptions(), overwrite=True)


def test_sentences_are_merged_and_stand_only_where_there_are_some(tmp_path: Path) -> None:
    said = [["Ada was born in Oslo.", ["Ada", "Oslo"]]]
    rows = [{"passage": "Ada", "extracted_sentences": said}, {"passage": "Tove", "extracted_sentences": []}]
    (tmp_path / "a.json").write_text(json.dumps({"docs": rows}), encoding="utf-8")
    output = tmp_path / "out.json"
    merge([tmp_path / "a.json"], OutputFiles(output), TextOptions(), overwrite=False)
    merged = {doc["passage"]: doc for doc in json.loads(output.read_text("utf-8"))["docs"]}
    assert merged["Ada"]["extracted_sentences"] == said
    assert "extracted_sentences" not in merged["Tove"]


def test_a_failure_that_another_file_healed_is_none(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a.json"), written(tmp_path / "b.json", Ada=[])
    passage_id = TextOptions().passage_id("Ada")
    row = {"source_ids": ["s"], "reason": "cut", "reply": "{", "permanent": False}
    lines = [json.dumps({"passage_id": key, **row}) for key in (passage_id, "passage-other")]
    OutputFiles(a).failed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    into = OutputFiles(tmp_path / "out.json")
    assert [failure.passage_id for failure in merge([a, b], into, TextOptions(), overwrite=False).failed] == [
        "passage-other"
    ]
    assert [failure.reply for failure in into.read_failed()] == ["{"]


def test_missing_shards_are_named(tmp_path: Path) -> None:
    for number in (1, 4):
        written(tmp_path / f"e.{number}-of-4.json")
    with pytest.raises(ConfigError, match=r"of 4 shards, 2, 3 are missing; run extract.py shard=2/4"):
        found_files([str(tmp_path / "e.*-of-4.json")])
    with pytest.raises(ConfigError, match="there is no file"):
        found_files([str(tmp_path / "x*.json")])
