"""What a picture consists of, in pixels: boxes in columns and the links between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hipporag_torch.types import SourceName, SourceShares

BoxKind = Literal["fact", "dropped", "seed", "bridge", "passage"]
LinkKind = Literal["evidence", "fact", "synonym", "membership", "mention"]
Point = tuple[float, float]

WIDTH, MIN_HEIGHT = 1600.0, 1000.0
FONT, SMALL = 15.0, 12.5
LINE, SMALL_LINE, PADDING, GAP = 19.0, 16.0, 8.0, 14.0
MARGIN, HEADER, FOOTER = 36.0, 150.0, 70.0
# What the lines mean, for the legends.
LEGEND: Mapping[LinkKind, str] = {
    "evidence": "end of a fact that was kept",
    "fact": "stated as a fact",
    "synonym": "alike in meaning",
    "membership": "passage states phrase; width: mass that flowed",
    "mention": "passage names phrase",
}
# What the colours in a bar mean: where a seed's weight comes from, and where a passage's mass started.
SOURCES: Mapping[SourceName, str] = {
    "facts": "bar: from facts",
    "entities": "bar: from phrases of the question",
    "passages": "bar: from passages like the question",
}


@dataclass(frozen=True)
class Box:
    """A rectangle with text; `x`, `y` is its top left corner. `share` in [0, 1] is drawn as a bar.

    `sources` are the parts of that bar, if it has some; they add up to `share`.
    """

    key: str
    kind: BoxKind
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    note: str
    share: float = 0.0
    sources: SourceShares = ()


@dataclass(frozen=True)
class Link:
    """Cubic Bézier curves from one box to another: a start, then three points for each curve.

    `stroke` is its width.
    """

    source: str
    target: str
    kind: LinkKind
    points: tuple[Point, ...]
    stroke: float
    label: str = ""


@dataclass(frozen=True)
class Heading:
    """The title over a column."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Layout:
    """A picture of `width` × `height`; y grows downwards."""

    width: float
    height: float
    question: tuple[str, ...]
    route: tuple[str, ...]
    headings: tuple[Heading, ...]
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]

    @property
    def legend(self) -> list[tuple[LinkKind, str]]:
        """The kinds of links that there are, and what they mean."""
        kinds = {link.kind for link in self.links}
        return [(kind, meaning) for kind, meaning in LEGEND.items() if kind in kinds]

    @property
    def source_legend(self) -> list[tuple[SourceName, str]]:
        """The sources that bars have parts of, and what they are."""
        names = {name for box in self.boxes for name, _ in box.sources}
        return [(name, meaning) for name, meaning in SOURCES.items() if name in names]
