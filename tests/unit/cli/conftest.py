"""A small folder of notes, an index of it, and a way to call commands in this process."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.cli import main

NOTES = {
    "ada.md": "# Ada Vale\n\nAda Vale founded Northwind Press in Bergen.\n",
    "places/bergen.md": "# Bergen\n\nBergen lies on the west coast of Norway.\n",
    "places/same.md": "# Bergen\n\nBergen lies on the west coast of Norway.\n",
}
TRIPLES = {
    "ada.md": [["Ada Vale", "founded", "Northwind Press"], ["Northwind Press", "founded in", "Bergen"]],
    "places/bergen.md": [["Bergen", "lies in", "Norway"]],
}
QUESTION = "In which country was Northwind Press founded?"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output of a command that did what it was asked."""
        assert (self.status, self.err) == (0, "")
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of a command that failed."""
        assert (self.status, self.out) == (1, "")
        (line,) = self.err.splitlines()
        return line

    @property
    def misuse(self) -> str:
        """The one line of a command that was called in a wrong way."""
        assert (self.status, self.out) == (2, "")
        (line,) = self.err.splitlines()
        return line


Call = Callable[..., Done]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command; its standard input is no terminal."""

    def run(*arguments: str | Path) -> Done:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else -1
        return Done(status, *capsys.readouterr())

    return run


def write_notes(folder: Path) -> Path:
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "zeros.txt").write_bytes(b"\0\1")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with two texts, one of them twice, a binary file and one of another kind."""
    return write_notes(tmp_path / "notes")


@pytest.fixture
def made(tmp_path: Path) -> list[str]:
    """The settings that index the notes without a model."""
    docs = [
        {"passage": NOTES[name].strip(), "extracted_entities": [], "extracted_triples": triples}
        for name, triples in TRIPLES.items()
    ]
    (tmp_path / "openie.json").write_text(json.dumps({"docs": docs}), encoding="utf-8")
    return [
        "embedder=hashing",
        "extractor=stored",
        f"extractor.path={tmp_path / 'openie.json'}",
        "graph=default",
        "runtime.cache=false",
        "runtime.device=cpu",
    ]


@pytest.fixture
def index(call: Call, notes: Path, made: list[str], tmp_path: Path) -> Path:
    """An index of the notes, which are called `notes` in it."""
    done = call("index-folder", notes, "--index", tmp_path / "index", "--name", "notes", *made)
    assert done.status == 0, done.err
    return tmp_path / "index"


@pytest.fixture
def copied(index: Path, tmp_path: Path) -> Path:
    """The same index in another place, to be broken."""
    shutil.copytree(index, tmp_path / "copy")
    return tmp_path / "copy"
