"""Fixtures that every kind of test shares. Tensor shapes are checked while tests run."""

import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# Before they are imported: the functions of these modules then check the shapes of their tensors. The
# others check what callers hand them by themselves, and the tests want to see how.
TENSOR_MODULES = (
    "ops",
    "graph",
    "graph_construction",
    "lexicon",
    "vocabulary",
    "connections",
    "extractions",
    "index",
    "retrievers.seeding",
    "retrievers.trace",
)
assert "hipporag_torch" not in sys.modules
install_import_hook([f"hipporag_torch.{module}" for module in TENSOR_MODULES], "beartype.beartype")

# A loaded machine is no failure, and the same commit draws the same examples.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and golden outputs; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("HIPPORAG_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip(
            f"no real data in {folder}; set HIPPORAG_SHARED to the folder that holds data/ and golden/"
        )
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks start a kernel each: `-m "not slow"` leaves them out."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.slow)


GPUS = [pytest.param("cuda", marks=pytest.mark.gpu)] if torch.cuda.is_available() else []


@pytest.fixture(params=["cpu", *GPUS])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every device there is: tensor tests run on each."""
    return torch.device(request.param)
