from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings

from hipporag_torch.explanation import Explanation
from hipporag_torch.viz.layout import lay_out
from hipporag_torch.viz.shapes import SMALL, Box, Layout
from hipporag_torch.viz.text import text_width

from .conftest import explanations, made


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def heights(layout: Layout, prefix: str) -> list[tuple[float, str]]:
    return sorted((box.y, box.key) for box in layout.boxes if box.key.startswith(prefix))


@given(explanations())
@settings(max_examples=60, deadline=None)
def test_no_two_boxes_overlap_and_none_leaves_the_picture(explanation: Explanation) -> None:
    for width in (1600.0, 1400.0):
        layout = lay_out(explanation, width=width)
        assert layout.width == width
        assert layout.height >= 1000
        for a, b in combinations(layout.boxes, 2):
            assert not overlap(a, b), (a, b)
        for box in layout.boxes:
            assert box.x >= 0
            assert box.x + box.width <= width
            assert box.y >= 100
            assert box.y + box.height <= layout.height
            assert all(text_width(line, 15.0) <= box.width - 16 for line in box.lines)
            assert text_width(box.note, SMALL) <= box.width - 16


@given(explanations())
@settings(max_examples=40, deadline=None)
def test_everything_is_there_and_links_start_and_end_at_their_boxes(explanation: Explanation) -> None:
    layout = lay_out(explanation)
    boxes = {box.key: box for box in layout.boxes}
    assert len(boxes) == len(layout.boxes)
    assert {node.id for node in explanation.nodes} <= boxes.keys()
    assert len([link for link in layout.links if link.kind != "evidence"]) == len(explanation.edges)
    for link in layout.links:
        assert len(link.points) % 3 == 1
        source, target = boxes[link.source], boxes[link.target]
        assert link.points[0] == (source.x + source.width, source.y + source.height / 2)
        assert link.points[-1][1] == target.y + target.height / 2
    assert layout == lay_out(explanation)


def test_columns_run_from_facts_to_passages() -> None:
    explanation = made(
        ["P0", "P1", "bridge", "seed", "bridge 2"],
        shares=[0.4, 0.2, 0.1, 0.5, 0.1],
        num_passages=2,
        links=[(0, 3), (1, 4), (0, 1)],
        facts=[(2, 3, True), (0, 1, False)],
    )
    layout = lay_out(explanation)
    x = {box.kind: box.x for box in layout.boxes}
    assert x["fact"] < x["seed"] < x["bridge"] < x["passage"]
    assert [heading.x for heading in layout.headings] == sorted({box.x for box in layout.boxes})
    assert "dropped" not in x
    assert [key for _, key in heights(layout, "passage")] == ["passage:p0", "passage:p1"]


def test_a_link_over_a_column_runs_between_its_boxes() -> None:
    """From a seed to a passage, past four bridges."""
    explanation = made(
        ["P0", "b0", "seed", "b1", "b2", "b3", "b4", "b5"],
        shares=[0.4] * 8,
        num_passages=1,
        links=[(i, 7) for i in range(7)],
        facts=[],
    )
    layout = lay_out(explanation)
    bridges = [box for box in layout.boxes if box.kind == "bridge"]
    long_links = [link for link in layout.links if len(link.points) > 4]
    assert len(long_links) == 3
    for link in long_links:
        inside = [y for x, y in link.points if bridges[0].x < x < bridges[0].x + bridges[0].width]
        assert inside
        assert not any(box.y <= y <= box.y + box.height for box in bridges for y in inside)


def test_dense_route_shows_what_was_considered() -> None:
    explanation = made(
        ["P0", "P1"], shares=[0.4, 0.2], num_passages=2, links=[], facts=[(0, 1, True)], dense=True
    )
    layout = lay_out(explanation)
    assert [box.kind for box in layout.boxes] == ["dropped", "passage", "passage"]
    assert layout.links == ()
    assert layout.legend == []
    assert "score 0.4" in layout.boxes[1].note
    assert "dense:no_facts" in " ".join(layout.route)


def test_nothing_found() -> None:
    empty = Explanation("Who?", "none:empty_index", "the index is empty", (), (), (), ())
    assert lay_out(empty).boxes == ()


def test_a_bars_parts_add_up_to_it() -> None:
    explanation = made(
        ["P0", "P1", "bridge", "seed"], shares=[0.4, 0.2, 0.1, 0.5], num_passages=2, links=[], facts=[]
    )
    layout = lay_out(explanation)
    parts = {box.key: box.sources for box in layout.boxes}
    assert parts == {
        "phrase:seed": (("facts", 0.25), ("entities", pytest.approx(0.75))),
        "phrase:bridge": (),
        "passage:p0": (),
        "passage:p1": (("facts", pytest.approx(0.125)), ("passages", pytest.approx(0.375))),
    }
    assert [name for name, _ in layout.source_legend] == ["facts", "entities", "passages"]
    plain = made(["P0"], shares=[0.4], num_passages=1, links=[], facts=[])
    assert lay_out(plain).source_legend == []


def test_a_long_reason_takes_two_lines() -> None:
    explanation = replace(made(["P0"], shares=[0.4], num_passages=1, links=[], facts=[]), why="so " * 200)
    assert len(lay_out(explanation).route) == 2
    assert lay_out(explanation).route[1].endswith("…")
