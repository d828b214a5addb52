from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from hipporag_torch.errors import ConfigError
from hipporag_torch.explanation import Explanation
from hipporag_torch.viz.layout import lay_out
from hipporag_torch.viz.png import draw_png


@pytest.mark.parametrize("name", ["hostile", "many_scripts"])
def test_png_is_an_image_of_the_layouts_size(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Warnings are errors here; a font that is asked for and absent would be logged."""
    explanation: Explanation = request.getfixturevalue(name)
    path = tmp_path / "it.png"
    draw_png(explanation, path)
    image = imread(path)
    layout = lay_out(explanation)
    assert image.shape[:2] == (round(layout.height), 1600)
    assert caplog.records == []
    for box in layout.boxes:
        inside = image[int(box.y) : int(box.y + box.height), int(box.x) : int(box.x + box.width), :3]
        assert np.ptp(inside) > 0.3


def test_same_explanation_same_picture(hostile: Explanation, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw_png(hostile, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_nothing_found(tmp_path: Path) -> None:
    draw_png(Explanation("Who?", "none:empty_index", "empty", (), (), (), ()), tmp_path / "it.png")
    assert imread(tmp_path / "it.png").shape[:2] == (1000, 1600)


def test_missing_matplotlib(
    monkeypatch: pytest.MonkeyPatch, many_scripts: Explanation, tmp_path: Path
) -> None:
    monkeypatch.setattr("hipporag_torch.viz.png.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[viz\]'"):
        draw_png(many_scripts, tmp_path / "it.png")
