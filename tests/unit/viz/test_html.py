import re
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given, settings

from hipporag_torch.explanation import Explanation
from hipporag_torch.viz.html import page_of, write_html
from hipporag_torch.viz.layout import lay_out

from .conftest import HOSTILE, explanations, made

VOID = {"meta", "link", "path", "rect"}


class Reader(HTMLParser):
    """Tags with their attributes, texts, and whether tags close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or not self.get_starttag_text().endswith("/>"):
            self.open += [] if tag in {"meta", "link"} else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_texts_are_escaped(hostile: Explanation) -> None:
    page = page_of(hostile)
    read = Reader(page)
    assert read.open == []
    assert len(read.attributes("script")) == 1
    assert "alert(1)" not in re.search(r"<script>(.*?)</script>", page, re.S)[1]  # type: ignore[index]
    shown = HOSTILE.replace("\x00", "")
    assert sum(f"{shown} 0" in text for text in read.texts) >= 2
    assert f"{shown} question" in read.texts
    assert "\x00" not in page
    assert "$" in page


@given(explanations())
@settings(max_examples=40, deadline=None)
def test_structure_does_not_depend_on_texts(explanation: Explanation) -> None:
    read = Reader(page_of(explanation))
    layout = lay_out(explanation)
    assert read.open == []
    groups = [a for a in read.attributes("g") if "data-node" in a]
    assert len(groups) == len(layout.boxes)
    assert all(a["tabindex"] == "0" and a["role"] == "button" and a["aria-label"] for a in groups)
    names = {a["data-node"] for a in groups}
    assert {a["data-detail"] for a in read.attributes("article")} == names
    links = [a for a in read.attributes("path") if "data-a" in a]
    assert len(links) == len(layout.links)
    assert all({a["data-a"], a["data-b"]} <= names for a in links)
    assert not any(key.startswith("on") for _, attributes in read.tags for key in attributes)


def test_page_needs_nothing_else(many_scripts: Explanation, tmp_path: Path) -> None:
    write_html(many_scripts, tmp_path / "it.html")
    page = (tmp_path / "it.html").read_text("utf-8")
    assert "//" not in re.sub(r"(?m)^\s*//.*$", "", page)
    assert not re.search(r"url\(|@import|fetch\(|import\(|XMLHttpRequest", page)
    read = Reader(page)
    outside = [
        a.get("src") or a.get("href") for tag in ("script", "img", "link", "a") for a in read.attributes(tag)
    ]
    assert all(target is None or target.startswith("#") or target == "data:," for target in outside)
    (policy,) = [a["content"] for a in read.attributes("meta") if "http-equiv" in a]
    assert policy
    assert policy.startswith("default-src 'none'")


def test_page_for_everyone(many_scripts: Explanation) -> None:
    page = page_of(many_scripts)
    read = Reader(page)
    assert read.attributes("html")[0]["lang"] == "en"
    assert "<title>Who?</title>" in page
    assert "prefers-color-scheme: dark" in page
    assert {"main", "header", "aside", "h1"} <= {tag for tag, _ in read.tags}
    assert all("aria-label" in a or "aria-hidden" in a for a in read.attributes("svg"))


def test_sources_are_told_in_colours_in_words_and_in_numbers() -> None:
    explanation = made(
        ["P0", "P1", "bridge", "seed"], shares=[0.4, 0.2, 0.1, 0.5], num_passages=2, links=[], facts=[]
    )
    page = page_of(explanation)
    read = Reader(page)
    bars = [a["class"] for a in read.attributes("rect") if str(a.get("class")).startswith("bar")]
    # The seed's bar and the second passage's have two parts each; the legend has one of each.
    assert sorted(map(str, bars)) == sorted(
        ["bar", "bar"] + ["bar from-facts"] * 3 + ["bar from-entities"] * 2 + ["bar from-passages"] * 2
    )
    assert "seeded by entities 75, facts 25 %" in read.texts
    assert "mass from passages 75, facts 25 %" in read.texts
    labels = [str(a["aria-label"]) for a in read.attributes("g") if "data-node" in a]
    assert sum(label.endswith("mass from passages 75, facts 25 %") for label in labels) == 1
    assert "of it from entities" in read.texts
    assert "15.00%" in read.texts
