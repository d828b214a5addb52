"""A small data set on disk, and ways to run the scripts on it as a user would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRACTED = {
    ("Ada Vale", "Ada Vale founded Northwind Press in Bergen."): [
        ["Ada Vale", "founded", "Northwind Press"],
        ["Northwind Press", "founded in", "Bergen"],
        ["Ada Vale", "founder"],
    ],
    ("Northwind Press", "Northwind Press prints atlases of the Arctic."): [
        ["Northwind Press", "prints", "atlases"]
    ],
    ("Bergen", "Bergen lies on the west coast of Norway."): [["Bergen", "lies in", "Norway"]],
    ("Tove Lund", "Tove Lund maps glaciers for Northwind Press."): [
        ["Tove Lund", "works for", "Northwind Press"]
    ],
    ("Svalbard", "Glaciers cover half of Svalbard."): [["glaciers", "cover", "Svalbard"]],
    ("Nordstjernen", "The ferry's cook bakes rye bread."): [],
    ("東京", "東京は日本の首都です。"): [["東京", "首都", "日本"]],
}
ASKED = {
    "In which country was Northwind Press founded?": ("Norway", ["Ada Vale", "Bergen"]),
    "Where was the press founded that employs Tove Lund?": ("Bergen", ["Tove Lund", "Ada Vale"]),
    "日本の首都はどこですか？": ("東京", ["東京"]),
}


@dataclass(frozen=True)
class Done:
    """A finished run of a script."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The message of a run that failed as it should: one line, no traceback, nothing on stdout."""
        lines = self.err.strip().splitlines()
        if self.status != 1 or len(lines) != 1 or self.out.strip():
            pytest.fail(f"expected one line of error and status 1, got {self.status}:\n{self.out}{self.err}")
        return lines[0]


Run = Callable[..., Done]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpus.json, questions.json and openie.json in our own words."""
    folder = tmp_path_factory.mktemp("data") / "small"
    folder.mkdir()
    text_of = dict(EXTRACTED)
    corpus = [{"title": title, "text": text} for title, text in text_of]
    questions = [
        {
            "id": f"q{number}",
            "question": question,
            "answer": [answer],
            "paragraphs": [{**row, "is_supporting": row["title"] in gold} for row in corpus],
        }
        for number, (question, (answer, gold)) in enumerate(ASKED.items())
    ]
    docs = [
        {"passage": f"{title}\n{text}", "extracted_entities": [title], "extracted_triples": triples}
        for (title, text), triples in EXTRACTED.items()
    ]
    for name, content in (("corpus", corpus), ("questions", questions), ("openie", {"docs": docs})):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def stated(small: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The overrides that run a script on `small` without a model."""
    return [
        f"dataset.path={small}",
        f"extractor.path={small / 'openie.json'}",
        "embedder=hashing",
        f"runtime.cache_dir={tmp_path_factory.mktemp('cache')}",
        "runtime.device=cpu",
    ]


def predictions(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run but for their seconds, which no two runs share."""
    lines = (folder / "predictions.jsonl").read_text("utf-8").split("\n")[:-1]
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def without_pictures(script: str, arguments: Sequence[str]) -> list[str]:
    """Drawing takes seconds, and few tests look at what is drawn."""
    wanted = script != "evaluate" or any(argument.startswith("pictures.") for argument in arguments)
    if wanted:
        return [*arguments]
    # Hydra wants the overrides side by side, its flags before or behind.
    flags = [argument for argument in arguments if argument.startswith("-")]
    overrides = [argument for argument in arguments if not argument.startswith("-")]
    return [*flags, *overrides, "pictures.charts=false", "pictures.worst=0"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "80", "PYTHONWARNINGS": "default", **more}


@pytest.fixture(scope="session")
def run_script() -> Run:
    """Run a script in a process of its own, from the repository's root."""

    def run(script: str, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        command = [sys.executable, f"scripts/{script}.py", *without_pictures(script, arguments)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(**(env or {})), capture_output=True, text=True, timeout=300
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def fork_script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """`run_script`, but quick: for the many runs that end in an error."""
    files = [tmp_path_factory.mktemp("forks") / name for name in ("out", "err")]
    program = [sys.executable, str(Path(__file__).with_name("forks.py"))]
    with subprocess.Popen(
        program, cwd=ROOT, env=environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout

        def run(script: str, *arguments: str) -> Done:
            job = [f"scripts/{script}.py", without_pictures(script, arguments), *map(str, files)]
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            return Done(status, *(path.read_text("utf-8") for path in files))

        yield run
        server.stdin.close()
