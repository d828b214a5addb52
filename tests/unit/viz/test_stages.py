import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from hipporag_torch.errors import InputError
from hipporag_torch.viz.stages import draw_stages, label_of, runs_of, stages_of

RUN = {"embed": 30.0, "extract": 10.0, "retrieve": 0.0}


@pytest.mark.parametrize(
    ("run", "stage", "label"),
    [
        (RUN, "embed", "30 s  75%"),
        (RUN, "retrieve", "0 s  0%"),
        (RUN, "read", "–"),
        ({"embed": 1999.0, "read": 1.25}, "embed", "1,999 s  100%"),
        ({"embed": 1999.0, "read": 1.25}, "read", "1.25 s  <1%"),
        ({"read": 0.0042}, "read", "4.2 ms  100%"),
        ({"read": 0.0}, "read", "0 s"),
    ],
)
def test_a_bar_says_its_seconds_and_its_share(run: dict[str, float], stage: str, label: str) -> None:
    assert label_of(run, stage) == label


def test_stages_stand_in_the_order_given() -> None:
    runs = {"dense": {"load": 1.0, "retrieve": 1.0}, "graph": {"load": 1.0, "build": 1.0, "retrieve": 1.0}}
    assert stages_of(runs) == ["load", "build", "retrieve"]
    assert stages_of({"a": {"z": 1.0, "a": 2.0}, "b": {"first": 1.0, "a": 1.0, "z": 1.0}}) == [
        "first",
        "z",
        "a",
    ]


def test_one_run_goes_without_a_name() -> None:
    assert runs_of(RUN) == {"": RUN}
    assert runs_of({"a": RUN, "b": {}}) == {"a": RUN, "b": {}}


def test_bars_are_as_long_as_their_seconds(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    draw_stages(RUN, path, title="Where the time went")
    image = imread(path)
    assert image.shape[1] == 1200
    is_blue = np.abs(image[:, :, :3] - np.array([0, 0x72, 0xB2]) / 255).max(2) < 0.02
    lengths = [int(row.sum()) for row in is_blue]
    long, short = sorted({length for length in lengths if lengths.count(length) > 15 and length})[::-1]
    assert long / short == pytest.approx(3.0, rel=0.02)


def test_same_seconds_same_picture(tmp_path: Path) -> None:
    seconds = {f"run {i} 東京 $x$" + " long" * i: {**RUN, "\x00": 1.0, "a" * 99: float(i)} for i in range(9)}
    for name in ("a.png", "b.png"):
        draw_stages(seconds, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    height, width = imread(tmp_path / "a.png").shape[:2]
    assert (width, 600 < height < 1100) == (1200, True)


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ({}, "there is no stage to draw"),
        ({"a": {}}, "there is no stage to draw"),
        ({"a": -1.0}, "the stage 'a' took -1.0 seconds"),
        ({"run": {"a": math.inf}}, "the stage 'a' of 'run' took inf seconds"),
        ({"a": 1.0, "run": {"a": 1.0}}, "'a' has seconds and 'run' has stages"),
    ],
)
def test_seconds_that_make_no_sense(seconds: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        draw_stages(seconds, tmp_path / "it.png")
    assert list(tmp_path.iterdir()) == []
