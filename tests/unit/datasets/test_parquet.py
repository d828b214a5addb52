import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hipporag_torch.datasets import HubDataset, LocalDataset
from hipporag_torch.datasets.rows import read_rows
from hipporag_torch.errors import ConfigError, DatasetError

from .hub_rows import CASES, CORPUS, REPO, cached_snapshot, write_files


def columnar(pairs: list[list[Any]], other: str) -> dict[str, list[Any]]:
    """Pairs as the hub's own HotpotQA has them: Parquet has no lists of several types."""
    return {"title": [title for title, _ in pairs], other: [value for _, value in pairs]}


def parquet_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a case as a Parquet file can hold them."""
    rows = [dict(row) for row in CASES[name].questions]
    for row in rows:
        if "supporting_facts" in row:
            row["supporting_facts"] = columnar(row["supporting_facts"], "sent_id")
            row["context"] = columnar(row["context"], "sentences")
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    # A column for every key of any row, with null where a row lacks it.
    keys = dict.fromkeys(key for row in rows for key in row)
    pq.write_table(pa.table({key: [row.get(key) for row in rows] for key in keys}), path)


@pytest.mark.parametrize("name", CASES)
def test_every_shape_reads_as_its_json_does(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, name)
    write(tmp_path / "q.parquet", parquet_rows(name))
    write(tmp_path / "c.parquet", CORPUS)
    plain = LocalDataset(path=tmp_path, corpus=f"{name}_corpus.json", questions=f"{name}.json").load()
    read = LocalDataset(path=tmp_path, corpus="c.parquet", questions="q.parquet").load()
    assert (read.documents, read.questions) == (plain.documents, plain.questions)
    assert read.questions[0].answers == CASES[name].answers


def test_from_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    snapshot = cached_snapshot(tmp_path)
    write(snapshot / "q.parquet", parquet_rows("popqa"))
    write(snapshot / "c.parquet", CORPUS)
    dataset = HubDataset(name="popqa", repo=REPO, corpus="c.parquet", questions="q.parquet").load()
    assert dataset.questions[0].answers == CASES["popqa"].answers
    assert dataset.origin["files"]["corpus"]["name"] == "c.parquet"


def test_null_is_an_absent_key_at_every_depth_but_not_in_a_list(tmp_path: Path) -> None:
    rows = [
        {"a": 1, "b": None, "c": {"d": None, "e": [{"f": None, "g": "h"}, {"f": 2, "g": None}]}},
        {"a": None, "b": [None, 3], "c": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert [row.fields for row in read_rows(tmp_path / "x.parquet")] == [
        {"a": 1, "c": {"e": [{"g": "h"}, {"f": 2}]}},
        {"b": [None, 3]},
    ]


def test_a_missing_value_is_named_with_its_row(tmp_path: Path) -> None:
    write(tmp_path / "c.parquet", [{"title": "A", "text": "one"}, {"title": "B", "text": None}])
    with pytest.raises(DatasetError, match=r"c\.parquet, row 1: there is no 'text'; the keys are title\."):
        LocalDataset(path=tmp_path, corpus="c.parquet").documents()


def test_folders_that_look_like_partitions_add_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "answer=x"
    folder.mkdir()
    write(folder / "c.parquet", CORPUS)
    assert set(read_rows(folder / "c.parquet")[0].fields) == {"title", "text", "idx"}


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "c.parquet").write_text(json.dumps(CORPUS))
    with pytest.raises(DatasetError, match=r"c\.parquet is not a readable Parquet file: .*fetch it again"):
        LocalDataset(path=tmp_path, corpus="c.parquet").documents()


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "c.parquet", CORPUS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"c\.parquet needs pyarrow.* 'hipporag-torch\[parquet\]'"):
        LocalDataset(path=tmp_path, corpus="c.parquet").documents()


@pytest.mark.parametrize(
    ("context", "match"),
    [
        ({"title": ["A", "B"], "sentences": [["a"]]}, r"'context' has 2 in title, 1 in sentences"),
        ({"title": ["A"]}, r"'context' must be a list of pairs .* or two lists, one of them title"),
        ({"name": ["A"], "sentences": [["a"]]}, r"'context' must be a list of pairs .* or two lists"),
        ({"title": [3], "sentences": [["a"]]}, r"'context' must be a list of pairs"),
    ],
)
def test_lists_that_are_no_pairs(tmp_path: Path, context: dict[str, Any], match: str) -> None:
    row = CASES["hotpotqa"].questions[0] | {"context": context}
    (tmp_path / "questions.json").write_text(json.dumps([row]))
    (tmp_path / "corpus.json").write_text("[]")
    with pytest.raises(DatasetError, match=match):
        LocalDataset(path=tmp_path, shape="hotpotqa").load()
