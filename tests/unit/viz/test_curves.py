import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.curves import Curve
from hipporag_torch.viz.curves import MAX_DIRECT, draw_curves


def curve(name: str = "dense", at_1: float = 0.4, ks: tuple[int, ...] = (1, 2, 5, 10)) -> Curve:
    means = tuple(1 - (1 - at_1) / math.sqrt(k) for k in ks)
    return Curve(
        name, ks, means, tuple(max(0.0, m - 0.02) for m in means), tuple(min(1.0, m + 0.02) for m in means)
    )


def colors_in(path: Path) -> set[int]:
    red, green, blue = (imread(path)[:, :, :3] * 255).round().astype(int).transpose(2, 0, 1)
    return set(np.unique(red * 0x10000 + green * 0x100 + blue).tolist())


def test_every_curve_has_its_colour(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    draw_curves([curve("a", 0.2), curve("b", 0.4)], path, title="Two runs")
    assert imread(path).shape[:2] == (720, 1200)
    assert {0x0072B2, 0xD55E00} <= colors_in(path)
    draw_curves([curve("a", 0.2)], path, title="One run")
    assert 0xD55E00 not in colors_in(path)


@pytest.mark.parametrize("number", [1, MAX_DIRECT, MAX_DIRECT + 1, 45])
def test_same_curves_same_picture_which_grows_with_its_legend(tmp_path: Path, number: int) -> None:
    curves = [curve(f"run {i} " + "long " * (i % 9), i / 50) for i in range(number)]
    for name in ("a.png", "b.png"):
        draw_curves(curves, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert imread(tmp_path / "a.png").shape[0] == (720 if number < 20 else pytest.approx(1100, abs=30))


def test_one_k_different_ks_and_odd_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    curves = [
        curve("東京 $x^2$ \x00", ks=(5,)),
        curve("", ks=(1, 2, 3)),
        curve("القاهرة", ks=tuple(range(1, 60))),
        Curve("never", (1, 2), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
        Curve("always", (1, 2), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)),
    ]
    draw_curves(curves, tmp_path / "it.png", title="$ 東京", metric="title/$recall")
    assert imread(tmp_path / "it.png").shape[:2] == (720, 1200)
    assert caplog.records == []


def test_a_curve_at_one_k_shows_its_uncertainty(tmp_path: Path) -> None:
    draw_curves([Curve("a", (5,), (0.5,), (0.5,), (0.5,))], tmp_path / "sure.png")
    draw_curves([Curve("a", (5,), (0.5,), (0.3,), (0.7,))], tmp_path / "unsure.png")
    blue = np.array([0, 0x72, 0xB2]) / 255
    heights = []
    for name in ("sure.png", "unsure.png"):
        # The marker's column.
        column = imread(tmp_path / name)[:, 200:1000, :3]
        is_blue = np.abs(column - blue).max(2) < 0.02
        heights.append(int(is_blue.sum(0).max()))
    assert heights[0] < 20
    assert heights[1] > 300


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([], "there are no curves"),
        ([Curve("a", (), (), (), ())], "the curve 'a' has 0 ks"),
        ([Curve("a", (1, 2), (0.1,), (0.1, 0.1), (0.1, 0.1))], "2 ks, 1 means and bands of 2 and 2"),
        ([Curve("a", (2, 1), (0.1, 0.1), (0.1, 0.1), (0.1, 0.1))], r"must rise, got \(2, 1\)"),
        ([Curve("a", (1,), (math.nan,), (0.1,), (0.1,))], "the curve 'a' holds nan"),
        ([Curve("a", (1,), (0.1,), (0.1,), (1.1,))], "holds 1.1; expected values between 0 and 1"),
    ],
)
def test_curves_that_make_no_sense(curves: list[Curve], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        draw_curves(curves, tmp_path / "it.png")
    assert list(tmp_path.iterdir()) == []
