"""The page of an explanation, opened in headless Chromium."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from hipporag_torch.config import build_dataset, build_memory, compose
from hipporag_torch.evaluation import evaluate
from hipporag_torch.explanation import (
    ExplainedEdge,
    ExplainedNode,
    ExplainedPassage,
    Explanation,
    passage_node_id,
    phrase_id,
)
from hipporag_torch.tracking.worst import draw_worst
from hipporag_torch.types import Passage, TracedFact, Triple
from hipporag_torch.viz.html import write_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The first text would set a mark on the page if it ever ran.
TEXT = "<script>document.documentElement.dataset.ran = 'true'</script><img src=x onerror='boom()'>"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    labels = ["ada vale", "northwind press", TEXT]
    phrases = [ExplainedNode(phrase_id(p), "phrase", p, 0.1, i / 4) for i, p in enumerate(labels)]
    passage = Passage("p0", f"Ada Vale founded it. {TEXT}")
    node = ExplainedNode(passage_node_id("p0"), "passage", TEXT, 0.5, 0.0, 1)
    explanation = Explanation(
        question=f"Who founded it? {TEXT}",
        route="graph",
        why="it walked",
        facts=(
            TracedFact(
                Triple("ada vale", "founded", "northwind press"), 1.0, True, ("ada vale", "northwind press")
            ),
        ),
        nodes=(*phrases, node),
        edges=(
            ExplainedEdge(phrases[0].id, phrases[1].id, 2.0, ("fact",), ("founded",)),
            ExplainedEdge(phrases[0].id, node.id, 1.0, ("membership",), (), 0.2),
            ExplainedEdge(phrases[2].id, node.id, 1.0, ("membership",), (), 0.1),
        ),
        passages=(ExplainedPassage(1, 0.5, passage, 0.2, (("ada vale", 0.2),)),),
    )
    write_html(explanation, tmp_path / "page.html")
    return tmp_path / "page.html"


def chromium(page: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Open `page` with a profile of its own and without a network."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on the PATH; apt-get install chromium")
    command = [
        program,
        "--headless",
        "--no-sandbox",  # a container's root has no user namespaces
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        f"--user-data-dir={page.parent / 'profile'}",
        "--window-size=1400,900",
        *arguments,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_rendered_page(page: Path) -> None:
    done = chromium(page, "--dump-dom")
    assert "CONSOLE" not in done.stderr, done.stderr
    root = re.search(r"<html[^>]*>", done.stdout)
    assert root
    assert 'data-ready="true"' in root[0]
    assert "data-ran" not in root[0]
    nodes = re.findall(r'<g class="node (\w+)[^"]*" id="(n\d+)"[^>]*>', done.stdout)
    # One fact, the two seeds, one phrase on the way, one passage.
    assert [kind for kind, _ in nodes] == ["fact", "seed", "seed", "bridge", "passage"]
    # The first passage is chosen from the start, and its text stands in the panel.
    chosen = re.findall(r'<g class="node passage chosen"[^>]*aria-pressed="true"', done.stdout)
    assert len(chosen) == 1
    shown = re.findall(r'<article class="detail (\w+) shown"', done.stdout)
    assert shown == ["passage"]
    assert "Ada Vale founded it. &lt;script&gt;" in done.stdout


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot_is_not_blank(page: Path, scheme: str) -> None:
    picture = page.parent / "page.png"
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(page, f"--screenshot={picture}", *dark)
    image = imread(picture)[..., :3]
    assert image.shape[:2] == (900, 1400)
    background = np.median(image.reshape(-1, 3), axis=0)
    assert (background.mean() < 0.3) == (scheme == "dark")
    # The boxes of the picture, not only the header's text.
    assert (np.abs(image[150:] - background).max(-1) > 0.1).mean() > 0.02


def test_the_page_of_a_run_shows_the_seeds_of_its_question(tmp_path: Path) -> None:
    """A question of the sample, as scripts/evaluate.py draws its worst ones."""
    overrides = ["dataset=sample", "extractor=sample", "embedder=hashing", "runtime.cache=false"]
    cfg = compose("evaluate", overrides)
    dataset, memory = build_dataset(cfg).load(), build_memory(cfg)
    memory.add(dataset.documents)
    run = evaluate(dataset, memory.retriever, text=memory.index.text, traced=memory.index)
    [picture] = draw_worst(
        run.rows,
        index=memory.index,
        retrieve=lambda question: memory.retrieve([question], top_k=5, trace=True)[0],
        directory=tmp_path,
        count=1,
    )
    row = next(row for row in run.rows if row.question in picture.caption)
    assert picture.html
    drawn = chromium(picture.html, "--dump-dom").stdout
    spoken = re.findall(r'<g class="node seed[^>]*aria-label="([^"]*)"', drawn)
    shown = [re.fullmatch(r"Seed phrase: (.*), seed ([\d.]+)%.*", unescape(label)) for label in spoken]
    shares = {seed[1]: float(seed[2]) / 100 for seed in shown if seed}
    assert len(row.seeds) == 10
    assert {phrase: shares[phrase] for phrase, _ in row.seeds} == pytest.approx(dict(row.seeds), abs=1e-4)
