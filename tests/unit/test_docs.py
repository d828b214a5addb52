"""The pages with code: it runs, it prints what they say, and their commands compose."""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hipporag_torch.config import compose, require_known_keys

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["backends", "migrating"]
_BLOCK = re.compile(
    r"(?:^`(?P<file>\S+/\S+\.\w+)`\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block, and the file that the line above it names, if it is one."""

    language: str
    text: str
    file: str | None


def blocks_of(page: str) -> list[Block]:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return [Block(found["language"], found["text"], found["file"]) for found in _BLOCK.finditer(text)]


def commands_of(page: str) -> list[tuple[str, list[str]]]:
    """(script, arguments) for each command of a page that calls one of the scripts."""
    lines = "".join(block.text for block in blocks_of(page) if block.language == "sh").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    called = [(line[1], line[2:]) for line in words if line[:1] == ["python"]]
    return [(Path(script).stem, rest) for script, rest in called if script.startswith("scripts/")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, where modules in `mine` are found, as with PYTHONPATH=mine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def write_files(page: str, folder: Path) -> None:
    for block in blocks_of(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page: str, here: Path) -> None:
    write_files(page, here)
    names: dict[str, Any] = {"__name__": "page"}
    printed, told, ran = io.StringIO(), "", 0
    for block in blocks_of(page):
        if block.language == "python" and not block.file:
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, f"docs/{page}.md", "exec"), names)
            ran += 1
        elif block.language == "text":
            told += block.text
    assert ran
    assert printed.getvalue() == told


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_composes(page: str, here: Path) -> None:
    write_files(page, here)
    commands = commands_of(page)
    assert len(commands) >= 3
    for script, arguments in commands:
        overrides = list(arguments)
        if "--config-dir" in overrides:
            place = overrides.index("--config-dir")
            overrides[place : place + 2] = [f"hydra.searchpath=['file://{here / overrides[place + 1]}']"]
        require_known_keys(compose(script, overrides), script)


def test_every_key_that_replaces_an_old_one_exists() -> None:
    """In the last column of the table of options: `group.key` and `group=option`."""
    text = (DOCS / "migrating.md").read_text("utf-8")
    table = text[text.index("## Options") : text.index("## The same numbers")]
    cells = [line.rsplit(" | ", 1)[1] for line in table.splitlines() if line.startswith("| `")]
    told = [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    keys = [code.split(".") for code in told if re.fullmatch(r"[a-z_]+\.[a-z_]+", code)]
    choices = [code.split("=") for code in told if re.fullmatch(r"[a-z_]+=[a-z_0-9]+", code)]
    assert len(keys) > 30
    assert len(choices) > 15
    for group, key in keys:
        options = (DOCS.parent / "conf" / group).glob("*.yaml")
        assert any(key in yaml.safe_load(path.read_text("utf-8")) for path in options), f"{group}.{key}"
    for group, option in choices:
        assert group == "action" or (DOCS.parent / "conf" / group / f"{option}.yaml").is_file(), group
