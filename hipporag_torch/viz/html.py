"""An explanation as one HTML file that needs nothing else: no network, no library."""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from hipporag_torch.explanation import ExplainedNode, ExplainedPassage, Explanation, passage_node_id
from hipporag_torch.types import SourceShares, TracedFact
from hipporag_torch.viz.layout import fact_key, lay_out, shown_facts
from hipporag_torch.viz.shapes import FONT, LINE, PADDING, SMALL, Box, Layout, Link
from hipporag_torch.viz.text import of_own, percent, shares_text

_KIND_NAMES = {
    "fact": "Fact",
    "dropped": "Fact, not kept",
    "seed": "Seed phrase",
    "bridge": "Phrase",
    "passage": "Passage",
}
# What the parts of a box's bar are parts of.
_FROM = {"seed": "seeded by", "passage": "mass from"}
_LINK_NAMES = {
    "evidence": "end of the fact",
    "fact": "stated as a fact",
    "synonym": "alike in meaning",
    "membership": "stated in the passage",
    "mention": "named in the passage",
}


def write_html(explanation: Explanation, path: str | Path) -> None:
    """Write a page that shows `explanation`; hovering or choosing a box shows what it is joined to."""
    Path(path).write_text(page_of(explanation), encoding="utf-8")


def page_of(explanation: Explanation) -> str:
    """The page's HTML. Every text from outside is escaped."""
    layout = lay_out(explanation, width=_WIDTH, min_height=_MIN_HEIGHT)
    # The page's own short names: what a text holds never becomes an identifier.
    names = {box.key: f"n{number}" for number, box in enumerate(layout.boxes)}
    page = Template(files("hipporag_torch.viz").joinpath("page.html").read_text("utf-8"))
    return page.substitute(
        question=_clean(explanation.question),
        route=_clean(explanation.route),
        why=_clean(explanation.why),
        size=f"{layout.width:.0f} {layout.height - _TOP:.0f}",
        top=f"{_TOP:.0f}",
        summary=f"{len(layout.boxes)} boxes, {len(layout.links)} links",
        headings="\n".join(
            f'<text class="heading" x="{h.x:.1f}" y="{h.y:.1f}">{_clean(h.text)}</text>'
            for h in layout.headings
        ),
        links="\n".join(_link(link, names) for link in layout.links),
        boxes="\n".join(_box(box, names[box.key]) for box in layout.boxes),
        legend="\n".join(_legend(layout)),
        details="\n".join(_details(explanation, layout, names)),
    )


# Narrower than the PNG: the panel stands beside it.
_WIDTH, _MIN_HEIGHT = 1400.0, 700.0
# The page shows question and route above the picture, which starts at its column titles.
_TOP = 104.0
# As their lines in the picture: wide where mass flows.
_LEGEND_STROKE = {"membership": 5}


def _legend(layout: Layout) -> Iterator[str]:
    """What the lines mean, then the colours of the bars."""
    for kind, meaning in layout.legend:
        stroke = _LEGEND_STROKE.get(kind, 2)
        yield _legend_entry(f'<path class="link {kind}" stroke-width="{stroke}" d="M0 4H40"/>', meaning)
    for name, meaning in layout.source_legend:
        yield _legend_entry(f'<rect class="bar from-{name}" width="40" height="8"/>', meaning)


def _legend_entry(sign: str, meaning: str) -> str:
    return f'<span><svg viewBox="0 0 40 8" aria-hidden="true">{sign}</svg>{meaning}</span>'


def _clean(text: str) -> str:
    """Escaped, and without control characters, which HTML does not allow."""
    return escape("".join(c for c in text if c.isprintable() or c in "\n\t "), quote=True)


def _link(link: Link, names: Mapping[str, str]) -> str:
    start, *rest = [f"{x:.1f} {y:.1f}" for x, y in link.points]
    curves = " ".join("C " + ", ".join(rest[i : i + 3]) for i in range(0, len(rest), 3))
    label = f"<title>{_clean(link.label or _LINK_NAMES[link.kind])}</title>"
    return (
        f'<path class="link {link.kind}" data-a="{names[link.source]}" data-b="{names[link.target]}" '
        f'd="M {start} {curves}" stroke-width="{link.stroke:.2f}">{label}</path>'
    )


def _box(box: Box, name: str) -> str:
    shares = shares_text(of_own(box.sources))
    spoken = f"{_KIND_NAMES[box.kind]}: {' '.join(box.lines)}, {box.note}"
    if shares:
        spoken += f", {_FROM[box.kind]} {shares} %"
    x, y = box.x + PADDING + 2, box.y + PADDING + FONT - 3
    texts = [
        f'<text x="{x:.1f}" y="{y + LINE * number:.1f}" font-size="{FONT}">{_clean(line)}</text>'
        for number, line in enumerate(box.lines)
    ]
    note_y = y + LINE * len(box.lines) - 1
    texts.append(
        f'<text class="note" x="{x:.1f}" y="{note_y:.1f}" font-size="{SMALL}">{_clean(box.note)}</text>'
    )
    title = f"<title>{_FROM[box.kind]} {shares} %</title>" if shares else ""
    return (
        f'<g class="node {box.kind}" id="{name}" data-node="{name}" tabindex="0" role="button" '
        f'aria-controls="details" aria-label="{_clean(spoken)}">{title}'
        f'<rect class="shape" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6"/>{_bar(box)}{"".join(texts)}</g>'
    )


def _bar(box: Box) -> str:
    """In the colours of its parts, or in the box's own."""
    parts = [(f" from-{name}", share) for name, share in box.sources]
    x, rects = box.x + PADDING, []
    for kind, share in parts or [("", box.share)]:
        length = (box.width - 2 * PADDING) * share
        rects.append(
            f'<rect class="bar{kind}" x="{x:.1f}" y="{box.y + box.height - 7:.1f}" '
            f'width="{length:.1f}" height="4"/>'
        )
        x += length
    return "".join(rects) if box.share else ""


def _details(explanation: Explanation, layout: Layout, names: Mapping[str, str]) -> Iterator[str]:
    """What the side panel says about each box."""
    facts = {fact_key(number): fact for number, fact in shown_facts(explanation)}
    nodes = {node.id: node for node in explanation.nodes}
    passages = {passage_node_id(found.passage.id): found for found in explanation.passages}
    joined = _neighbours(layout)
    for box in layout.boxes:
        if box.key in facts:
            title, body = _about_fact(facts[box.key])
        elif box.key in passages:
            title, body = nodes[box.key].label, _about_passage(nodes[box.key], passages[box.key])
        else:
            title, body = nodes[box.key].label, _about_phrase(nodes[box.key])
        yield (
            f'<article class="detail {box.kind}" data-detail="{names[box.key]}">'
            f'<p class="kind">{_KIND_NAMES[box.kind]}</p><h2 dir="auto">{_clean(title)}</h2>{body}'
            f"{_neighbour_list(joined.get(box.key, []), layout, names)}</article>"
        )


def _about_fact(fact: TracedFact) -> tuple[str, str]:
    kept = "kept" if fact.kept else "not kept"
    return " | ".join(fact.fact.parts), _definitions({"score": f"{fact.score:.4f}", "fact filter": kept})


def _about_phrase(node: ExplainedNode) -> str:
    rows = {"share of the seed": percent(node.seed_share), **_of_it(node.sources)}
    return _definitions({**rows, "mass passed on": percent(node.mass_share)})


def _about_passage(node: ExplainedNode, found: ExplainedPassage) -> str:
    rows = {"rank": str(found.rank), "score": f"{found.score:.4f}"}
    if node.mass_share:
        rows["mass"] = percent(node.mass_share)
        rows.update(_of_it(found.sources))
        rows["in the last step from its own seed"] = percent(found.restart)
    sources = ", ".join(source.source_id for source in found.passage.sources)
    if sources:
        rows["source"] = sources
    through = _definitions({phrase: percent(flow) for phrase, flow in found.through})
    came = f"<h3>Most of its mass came through</h3>{through}" if found.through else ""
    return _definitions(rows) + came + f'<div class="text" dir="auto">{_clean(found.passage.text)}</div>'


def _of_it(sources: SourceShares) -> dict[str, str]:
    return {f"of it from {name}": percent(share) for name, share in sources}


def _definitions(rows: Mapping[str, str]) -> str:
    inside = "".join(
        f'<div><dt dir="auto">{_clean(name)}</dt><dd dir="auto">{_clean(value)}</dd></div>'
        for name, value in rows.items()
    )
    return f"<dl>{inside}</dl>"


def _neighbours(layout: Layout) -> dict[str, list[tuple[str, Link]]]:
    joined: dict[str, list[tuple[str, Link]]] = {}
    for link in layout.links:
        joined.setdefault(link.source, []).append((link.target, link))
        joined.setdefault(link.target, []).append((link.source, link))
    return joined


def _neighbour_list(joined: Iterable[tuple[str, Link]], layout: Layout, names: Mapping[str, str]) -> str:
    title = {box.key: " ".join(box.lines) for box in layout.boxes}
    rows = "".join(
        f'<li><a href="#{names[key]}" data-node="{names[key]}" dir="auto">{_clean(title[key])}</a> '
        f'<span class="how">{_clean(link.label or _LINK_NAMES[link.kind])}</span></li>'
        for key, link in joined
    )
    return f"<h3>Joined to</h3><ul>{rows}</ul>" if rows else ""
