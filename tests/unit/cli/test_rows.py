"""The JSON of the commands has the keys of the MCP server's results: whoever reads one can read the other."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import QUESTION, Call

pytest.importorskip("pydantic", reason="the server's results need it: pip install 'hipporag-torch[mcp]'")

from hipporag_torch.service import results

OFF = ["runtime.cache=false", "runtime.device=cpu"]


def same_keys(
    row: Mapping[str, Any], result: Any, *, more: Iterable[str] = (), less: Iterable[str] = ()
) -> None:
    """more: keys that the command alone has. less: those that only a server can say."""
    assert row.keys() - set(more) == result.model_fields.keys() - set(less)


def test_answers_and_passages_are_told_alike(call: Call, index: Path) -> None:
    answer = call("ask", QUESTION, "--index", index, "--json", *OFF).json
    same_keys(answer, results.AnswerResult, less=["generation"])
    same_keys(answer["usage"], results.UsageResult)
    same_keys(answer["passages"][0], results.PassageResult, more=["read"])
    same_keys(answer["passages"][0]["sources"][0], results.SourceResult)
    ranking = call("ask", QUESTION, "--index", index, "--json", "--passages-only", *OFF).json
    same_keys(ranking, results.RetrieveResult, less=["generation"])


def test_explanations_are_told_alike(call: Call, index: Path) -> None:
    told = call("explain", QUESTION, "--index", index, "--json", *OFF).json
    same_keys(told, results.ExplainResult, more=["files"], less=["generation"])
    parts = [
        ("facts", results.FactResult),
        ("passages", results.ExplainedPassageResult),
        ("nodes", results.NodeResult),
        ("edges", results.EdgeResult),
    ]
    for key, result in parts:
        same_keys(told[key][0], result)
    same_keys(told["passages"][0]["through"][0], results.ShareResult)


def test_folders_are_told_alike(call: Call, index: Path, notes: Path, made: list[str]) -> None:
    told = call("index-folder", notes, "--index", index, "--name", "notes", "--json", *made).json
    same_keys(told, results.FolderResult, more=["dry_run"])
    same_keys(told["files"][0], results.FileResult)
    server_alone = ["passages_known", "generation", "confirm"]
    same_keys(told["plan"], results.PlanResult, more=["embedder"], less=server_alone)


def test_what_an_index_holds_and_loses_is_told_alike(call: Call, index: Path) -> None:
    stats = call("stats", "--index", index, "--json").json
    server_alone = ["read_only", "loaded", "writing", "writes_waiting", "confirm_above"]
    same_keys(stats, results.StatsResult, less=server_alone)
    removed = call("remove", "notes/ada.md", "--index", index, "--preview", "--json").json
    same_keys(removed, results.DeleteResult)
    same_keys(removed["removed"], results.RemovedResult)
