"""Where everything of an explanation's picture stands: columns facts | seeds | bridges | passages.

Plain Python with estimated text widths, so that the picture and the page agree and need no library.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hipporag_torch.explanation import ExplainedEdge, ExplainedNode, Explanation, phrase_id
from hipporag_torch.types import SourceShares, TracedFact
from hipporag_torch.viz.shapes import (
    FONT,
    FOOTER,
    GAP,
    HEADER,
    LINE,
    MARGIN,
    MIN_HEIGHT,
    PADDING,
    SMALL_LINE,
    WIDTH,
    Box,
    BoxKind,
    Heading,
    Layout,
    Link,
    LinkKind,
    Point,
)
from hipporag_torch.viz.text import of_own, percent, wrap

# More would crowd the column.
MAX_FACTS = 8
# What rounds to 0 where scores are written.
LEAST_SCORE = 0.0005
_COLUMN_WIDTH = {"facts": 290.0, "seeds": 240.0, "bridges": 240.0, "passages": 340.0}
_TITLES = {
    "facts": "facts like the question",
    "seeds": "seeds: where the walk starts",
    "bridges": "phrases on the way",
    "passages": "passages returned",
}
# What a link that skips the bridges' column reserves there, so that it runs between the boxes.
_CORRIDOR = 3.0


@dataclass
class _Item:
    """A box on its way to a place; without a kind, a corridor."""

    key: str
    kind: BoxKind | None
    lines: tuple[str, ...] = ()
    note: str = ""
    share: float = 0.0
    sources: SourceShares = ()
    y: float = 0.0
    neighbours: list[str] = field(default_factory=list)

    @property
    def height(self) -> float:
        if self.kind is None:
            return _CORRIDOR
        return 2 * PADDING + LINE * len(self.lines) + (SMALL_LINE if self.note else 0.0)


def lay_out(explanation: Explanation, *, width: float = WIDTH, min_height: float = MIN_HEIGHT) -> Layout:
    """The picture of `explanation`; as high as it needs, but at least `min_height`."""
    columns = _columns(explanation)
    pairs = _joined(explanation, columns)
    _add_corridors(columns, pairs)
    tallest = max((_needed(column) for column in columns.values()), default=0.0)
    height = max(min_height, HEADER + tallest + FOOTER)
    _place(columns, height)
    left = _column_lefts(columns, width)
    boxes = tuple(
        Box(
            i.key, i.kind, left[name], i.y, _COLUMN_WIDTH[name], i.height, i.lines, i.note, i.share, i.sources
        )
        for name, column in columns.items()
        for i in column
        if i.kind is not None
    )
    headings = tuple(Heading(left[name], HEADER - 16, _title(name, columns)) for name in columns)
    # It is drawn bold, which is some 7 % wider than the estimate.
    question = wrap(explanation.question, (width - 2 * MARGIN) / 1.1, 24.0, max_lines=2)
    route = wrap(f"route {explanation.route}: {explanation.why}", width - 2 * MARGIN, FONT, max_lines=2)
    links = _links(pairs, columns, {box.key: box for box in boxes}, left)
    return Layout(width, height, question, route, headings, boxes, links)


def fact_key(number: int) -> str:
    """The key of the box of fact `number`; phrases and passages go by their node ids."""
    return f"fact:{number}"


def shown_facts(explanation: Explanation) -> list[tuple[int, TracedFact]]:
    """The facts that get a box, with their places: those kept that weigh something, or else all."""
    facts = list(enumerate(explanation.facts))
    telling = [(i, fact) for i, fact in facts if fact.kept and fact.score >= LEAST_SCORE]
    return (telling or facts)[:MAX_FACTS]


def _columns(explanation: Explanation) -> dict[str, list[_Item]]:
    """The boxes of each column, without empty columns."""
    facts = [
        _Item(
            fact_key(number),
            "fact" if fact.kept else "dropped",
            _lines("facts", " | ".join(fact.fact.parts), 4),
            f"score {fact.score:.3f}" if fact.kept else f"score {fact.score:.3f}, not kept",
        )
        for number, fact in shown_facts(explanation)
    ]
    columns: dict[str, list[_Item]] = {"facts": facts, "seeds": [], "bridges": [], "passages": []}
    phrases = [node for node in explanation.nodes if node.kind == "phrase"]
    most_seed = max((node.seed_share for node in phrases), default=0.0)
    most_mass = max((n.mass_share for n in explanation.nodes if n.kind == "passage"), default=0.0)
    most_passed = max((node.mass_share for node in phrases if not node.seed_share), default=0.0)
    for node in phrases:
        lines = _lines("seeds", node.label, 3)
        if node.seed_share:
            note = f"seed {percent(node.seed_share)}"
            share = _ratio(node.seed_share, most_seed)
            columns["seeds"].append(_Item(node.id, "seed", lines, note, share, _parts(node, share)))
        else:
            note = f"passes on {percent(node.mass_share)}" if node.mass_share else "passes nothing on"
            share = _ratio(node.mass_share, most_passed)
            columns["bridges"].append(_Item(node.id, "bridge", lines, note, share))
    scores = {passage.rank: passage.score for passage in explanation.passages}
    for node in explanation.nodes:
        if node.kind == "passage":
            columns["passages"].append(_passage(node, scores, most_mass))
    return {name: column for name, column in columns.items() if column}


def _passage(node: ExplainedNode, scores: Mapping[int, float], most_mass: float) -> _Item:
    rank = node.rank or 0
    note = f"{percent(node.mass_share)} of the mass" if most_mass else f"score {scores.get(rank, 0.0):.4f}"
    lines = _lines("passages", f"{rank}. {node.label}", 2)
    share = _ratio(node.mass_share, most_mass)
    return _Item(node.id, "passage", lines, note, share, _parts(node, share))


def _parts(node: ExplainedNode, share: float) -> SourceShares:
    """The parts of a bar of length `share`."""
    return tuple((name, part * share) for name, part in of_own(node.sources))


def _lines(column: str, text: str, max_lines: int) -> tuple[str, ...]:
    return wrap(text, _COLUMN_WIDTH[column] - 2 * PADDING - 8, FONT, max_lines=max_lines)


def _ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0


@dataclass(frozen=True)
class _Pair:
    """Two boxes to join, the left one first; inside a column, the upper one by the explanation's order."""

    source: str
    target: str
    kind: LinkKind
    stroke: float
    label: str


def _joined(explanation: Explanation, columns: Mapping[str, Sequence[_Item]]) -> list[_Pair]:
    place = {item.key: number for number, column in enumerate(columns.values()) for item in column}
    pairs = [
        _Pair(fact_key(number), phrase_id(end), "evidence", 1.5, "")
        for number, fact in shown_facts(explanation)
        if fact.kept
        for end in fact.ends
        if phrase_id(end) in place
    ]
    most = max((edge.flow for edge in explanation.edges), default=0.0)
    for edge in explanation.edges:
        source, target = edge.source, edge.target
        if place[source] > place[target]:
            source, target = target, source
        pairs.append(_Pair(source, target, _kind(edge), _stroke(edge, most), " / ".join(edge.predicates)))
    return pairs


def _kind(edge: ExplainedEdge) -> LinkKind:
    """A fact, where one joins the ends: what else does is told in the explanation alone."""
    return edge.kinds[0]


def _stroke(edge: ExplainedEdge, most: float) -> float:
    to_passage = edge.kinds[0] in ("membership", "mention")
    return 0.8 + 6.0 * _ratio(edge.flow, most) if to_passage else 1.6


def _add_corridors(columns: dict[str, list[_Item]], pairs: Sequence[_Pair]) -> None:
    """Join the items to their neighbours; a link over a whole column gets a corridor through it."""
    names = list(columns)
    column_of = {item.key: number for number, name in enumerate(names) for item in columns[name]}
    items = {item.key: item for column in columns.values() for item in column}
    for pair in pairs:
        chain = [items[pair.source]]
        for number in range(column_of[pair.source] + 1, column_of[pair.target]):
            chain.append(_Item(_corridor(pair, number), None))
            columns[names[number]].append(chain[-1])
        chain.append(items[pair.target])
        for first, second in pairwise(chain):
            first.neighbours.append(second.key)
            second.neighbours.append(first.key)


def _corridor(pair: _Pair, number: int) -> str:
    return f"corridor:{number}:{pair.kind}:{pair.source}→{pair.target}"


def _needed(column: Sequence[_Item]) -> float:
    return sum(item.height + GAP for item in column)


def _place(columns: dict[str, list[_Item]], height: float) -> None:
    """Order seeds and bridges by the mean height of their neighbours; facts and passages keep their order."""
    items = {item.key: item for column in columns.values() for item in column}
    for column in columns.values():
        _spread(column, height)
    for _ in range(8):
        for name, column in columns.items():
            if name in ("facts", "passages"):
                continue
            centre = {item.key: _barycentre(item, items) for item in column}
            # Python's sort is stable: equal ones keep the explanation's order.
            column.sort(key=lambda item, centre=centre: centre[item.key])
            _spread(column, height)


def _barycentre(item: _Item, items: Mapping[str, _Item]) -> float:
    around = [items[key] for key in item.neighbours]
    if not around:
        return item.y + item.height / 2
    return sum(other.y + other.height / 2 for other in around) / len(around)


def _spread(column: Sequence[_Item], height: float) -> None:
    """Give each item its y: evenly over the height, but no further apart than is pleasant."""
    free = height - HEADER - FOOTER - sum(item.height for item in column)
    gap = min(70.0, free / max(1, len(column)))
    y = HEADER + (free - gap * (len(column) - 1)) / 2
    for item in column:
        item.y = y
        y += item.height + gap


def _title(name: str, columns: Mapping[str, Sequence[_Item]]) -> str:
    if name == "facts" and all(item.kind == "dropped" for item in columns[name]):
        return "facts considered, none kept"
    return _TITLES[name]


def _column_lefts(columns: Iterable[str], width: float) -> dict[str, float]:
    names = list(columns)
    used = sum(_COLUMN_WIDTH[name] for name in names)
    between = min(200.0, (width - 2 * MARGIN - used) / max(1, len(names) - 1))
    lefts, x = {}, (width - used - between * (len(names) - 1)) / 2
    for name in names:
        lefts[name] = x
        x += _COLUMN_WIDTH[name] + between
    return lefts


def _links(
    pairs: Sequence[_Pair],
    columns: Mapping[str, Sequence[_Item]],
    boxes: Mapping[str, Box],
    left: Mapping[str, float],
) -> tuple[Link, ...]:
    corridors = {
        item.key: (left[name], left[name] + _COLUMN_WIDTH[name], item.y + item.height / 2)
        for name, column in columns.items()
        for item in column
        if item.kind is None
    }
    links = []
    for pair in pairs:
        source, target = boxes[pair.source], boxes[pair.target]
        if source.x == target.x:
            points = _arc(source, target)
        else:
            keys = [_corridor(pair, number) for number in range(len(columns))]
            points = _curve(source, target, [corridors[key] for key in keys if key in corridors])
        links.append(Link(pair.source, pair.target, pair.kind, points, pair.stroke, pair.label))
    return tuple(links)


def _arc(first: Box, second: Box) -> tuple[Point, ...]:
    """Within a column: out at the right side and back in, the further the longer."""
    x, y0, y1 = first.x + first.width, first.y + first.height / 2, second.y + second.height / 2
    out = x + 18 + min(40.0, abs(y1 - y0) / 10)
    return (x, y0), (out, y0), (out, y1), (x, y1)


def _curve(source: Box, target: Box, through: Sequence[tuple[float, float, float]]) -> tuple[Point, ...]:
    """From right side to left side; through a corridor it runs straight."""
    points: list[Point] = [(source.x + source.width, source.y + source.height / 2)]
    for x0, x1, y in (*through, (target.x, target.x, target.y + target.height / 2)):
        start_x, start_y = points[-1]
        middle = (start_x + x0) / 2
        points += [(middle, start_y), (middle, y), (x0, y)]
        if x1 != x0:
            points += [(x0 + (x1 - x0) / 3, y), (x0 + (x1 - x0) * 2 / 3, y), (x1, y)]
    return tuple(points)
