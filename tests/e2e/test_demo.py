"""`make demo` as a newcomer sees it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def demo(*overrides: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "scripts/demo.py", *overrides],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_the_demo_answers_explains_measures_and_draws(tmp_path: Path) -> None:
    done = demo(f"runtime.cache_dir={tmp_path / 'cache'}", f"output={tmp_path / 'out'}", "runtime.device=cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("no language model was used") == 3
    assert done.stdout.count("route graph") == 3
    assert "Traceback" not in done.stdout
    recall = {
        name: float(re.search(rf"{re.escape(name)} +[\d.]+ +[\d.]+ +([\d.]+)", done.stdout)[1])  # type: ignore[index]
        for name in ("graph, triples by spaCy", "graph, triples by hand", "dense", "BM25")
    }
    assert recall["graph, triples by hand"] >= 0.95
    assert recall["graph, triples by spaCy"] > recall["dense"] + 0.1
    assert recall["graph, triples by spaCy"] > recall["BM25"]
    assert (tmp_path / "out" / "question.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "question.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("show=-1", "ConfigError: show must be at least 0 and top_k at least 1, got -1 and 5"),
        ("+nonsense=1", "ConfigError: unknown key nonsense; demo takes "),
    ],
)
def test_a_wrong_setting_is_one_line(override: str, message: str) -> None:
    done = demo(override)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
