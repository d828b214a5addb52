import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.cli.options import INDEX_VARIABLE
from hipporag_torch.cli.output import UsageError
from hipporag_torch.cli.program import parser
from hipporag_torch.cli.settings import SEARCHES, settings_of
from hipporag_torch.errors import ConfigError

from .conftest import Call

ASK = SEARCHES | {"reader", "extractor"}


def asked(*overrides: str, **options: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"command": "ask", "index": "memory", "overrides": [*overrides], **options})


def targets(cfg: Any, *groups: str) -> list[str]:
    return [cfg[group]._target_.rpartition(".")[2] for group in groups]


def test_without_options_no_model_is_asked() -> None:
    settings = settings_of(asked())
    made = targets(settings.cfg, "embedder", "extractor", "reader", "linker", "fact_filter")
    assert made[:3] == ["packaged_minilm", "SentencesExtractor", "ExtractiveReader"]
    assert settings.cfg.index.path == "memory"
    assert settings.stated == frozenset()


def test_a_model_that_is_named_extracts_and_reads_but_overrules_no_index() -> None:
    settings = settings_of(asked(llm="qwen3", llm_base_url="http://localhost:8000/v1"), ASK)
    assert targets(settings.cfg, "extractor", "reader", "llm") == [
        "OpenIEExtractor",
        "LLMReader",
        "OpenAIChatModel",
    ]
    assert (settings.cfg.llm.model, settings.cfg.llm.base_url) == ("qwen3", "http://localhost:8000/v1")
    assert settings.stated == frozenset()


def test_what_is_stated_goes_before_what_a_model_implies() -> None:
    settings = settings_of(asked("reader=extractive", "extractor=none", llm="qwen3"), ASK)
    assert targets(settings.cfg, "extractor", "reader") == ["NoExtractor", "ExtractiveReader"]
    assert settings.stated == {"reader", "extractor"}


@pytest.mark.parametrize(
    ("name", "target", "model"),
    [
        ("hashing", "HashingEmbedder", None),
        ("BAAI/bge-m3", "SentenceTransformerEmbedder", "BAAI/bge-m3"),
        ("./models/own, [2]", "SentenceTransformerEmbedder", "./models/own, [2]"),
    ],
)
def test_an_embedder_is_an_option_or_a_model(name: str, target: str, model: str | None) -> None:
    settings = settings_of(asked(embedder=name))
    assert targets(settings.cfg, "embedder") == [target]
    assert settings.cfg.embedder.get("model") == model
    assert settings.stated == {"embedder"}


def test_the_environment_names_the_index_where_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INDEX_VARIABLE, "from the environment")
    assert settings_of(asked(index=None)).cfg.index.path == "from the environment"
    assert settings_of(asked(index="named")).cfg.index.path == "named"
    assert settings_of(asked("index.path=stated", index=None)).cfg.index.path == "stated"
    monkeypatch.setenv(INDEX_VARIABLE, "")
    with pytest.raises(UsageError, match="no index is named; give its directory as --index DIR"):
        settings_of(asked(index=None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["word"], "'word' is neither an option nor a key=value"),
        (["--top-kk"], "'--top-kk' is neither"),
        (["index.path=other"], "the index is named twice"),
    ],
)
def test_what_is_no_setting_is_a_wrong_call(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings_of(asked(*arguments))


def test_an_address_without_a_model_is_a_wrong_call() -> None:
    with pytest.raises(UsageError, match="add --llm MODEL"):
        settings_of(asked(llm_base_url="http://localhost:8000/v1"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("embedder=best", "embedder/best"),
        ("embedder.dimm=3", "embedder.dimm"),
        ("+index.nonsense=3", "index.nonsense"),
        ("embeder=hashing", "embeder is set, but hipporag-torch ask does not read it"),
        ("runtime.threads=[", "settings are key=value"),
    ],
)
def test_a_wrong_setting_is_one_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        settings_of(asked(override))
    assert "\n" not in str(caught.value)


def test_settings_stand_behind_options_in_any_number(tmp_path: Path) -> None:
    found, rest = parser().parse_known_args(
        ["remove", "a.md", "b=c.md", "--index", str(tmp_path), "index.wait_seconds=0", "runtime=cpu"]
    )
    assert found.source == ["a.md", "b=c.md"]
    assert rest == ["index.wait_seconds=0", "runtime=cpu"]


@pytest.mark.parametrize("command", ["ask", "index-folder", "stats", "sources", "remove", "explain"])
def test_help_shows_how_a_command_is_called(call: Call, command: str) -> None:
    done = call(command, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: hipporag-torch {command} ")
    _, _, examples = done.out.partition("\nexamples:\n")
    assert examples
    for line in examples.splitlines():
        program, *words = shlex.split(line)
        found, rest = parser().parse_known_args(words)
        assert (program, found.command, found.index, rest) == ("hipporag-torch", command, "memory", [])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["ask"],
        ["ask", "Who?", "--index"],
        ["ask", "Who?", "--index", "x", "--top-k", "0"],
        ["ask", "Who?", "--index", "x", "more"],
        ["stats", "--ind", "x"],
        ["remove", "--index", "x"],
    ],
)
def test_a_wrong_call_ends_with_status_2(call: Call, arguments: list[str]) -> None:
    done = call(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.strip()
