"""Embedding through vLLM, with a stand-in for the package."""

from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.vllm import VLLMEmbedder
from hipporag_torch.errors import BackendError, ConfigError

from ...tiny_chat_model import save_tiny_chat_model
from ...vllm_fake import FakeVLLM


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat_model(tmp_path_factory.mktemp("vllm") / "tiny")


@pytest.fixture
def tiny(saved: Path, tmp_path: Path) -> Path:
    """Another path for each test, so that none meets an engine of the test before."""
    link = tmp_path / "tiny"
    link.symlink_to(saved)
    return link


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    return FakeVLLM().install(monkeypatch)


def embedder_of(tiny: Path, **options: object) -> VLLMEmbedder:
    return VLLMEmbedder(model=str(tiny), **options)  # pyright: ignore[reportArgumentType]


def test_rows_are_unit_vectors_in_order_across_lots(tiny: Path, vllm: FakeVLLM):
    embedder = embedder_of(tiny, batch_size=2)
    steps: list[tuple[str, int, int]] = []
    rows = embedder.embed(["abc", "b", "abc", "", "é"], "fact", lambda *step: steps.append(step))
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(5))
    assert torch.equal(rows[0], rows[2])
    assert torch.equal(rows[1], embedder.embed(["b"], "fact")[0])
    assert steps == [("embed fact", 2, 5), ("embed fact", 4, 5), ("embed fact", 5, 5)]
    assert len(vllm.engines) == 1
    assert vllm.engines[0].options["runner"] == "pooling"


def test_texts_are_cut_by_tokens_and_that_is_known(tiny: Path, vllm: FakeVLLM):
    embedder = embedder_of(tiny, dim=3, max_tokens=5, instructions={"fact": "f:"})
    assert embedder.truncated(["abc", "abcd", "éé"], "fact") == [False, True, True]
    embedder.embed(["abcd"], "fact")
    assert len(vllm.embedded[-1]) == 5
    assert embedder.truncated([], "fact") == []
    assert embedder_of(tiny, dim=3).truncated(["x" * 64, "x" * 65], "fact") == [False, True]
    with pytest.raises(ConfigError, match=r"embedder.max_tokens=65, but vLLM runs vllm:tiny with 64 tokens"):
        embedder_of(tiny, dim=3, max_tokens=65).embed(["a"], "fact")


def test_the_identity_is_not_that_of_another_engine(tiny: Path, vllm: FakeVLLM):
    identity = embedder_of(tiny, dim=3).identity
    assert (identity.name, identity.dim, identity.pooling) == ("vllm:tiny", 3, "vllm")
    assert vllm.engines == [], "a stated dimension needs no engine"
    assert embedder_of(tiny).identity == identity
    assert embedder_of(tiny, pooling="last").identity != identity


def test_pooling_is_what_was_stated(tiny: Path, vllm: FakeVLLM):
    embedder_of(tiny, pooling="mean").embed(["a"], "fact")
    assert vllm.engines[0].options["pooler_config"].seq_pooling_type == "MEAN"


def test_a_wrong_dimension_is_an_error_that_names_both(tiny: Path, vllm: FakeVLLM):
    with pytest.raises(BackendError, match=r"dim=8, but its vectors have 3 numbers"):
        embedder_of(tiny, dim=8).embed(["a"], "fact")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, r"embedder.batch_size must be at least 1"),
        ({"pooling": "max"}, r"embedder.pooling must be one of last, cls, mean, got 'max'"),
        ({"gpu_memory_utilization": 1.1}, r"embedder.gpu_memory_utilization"),
        ({"revision": "main"}, r"embedder.revision=main is for hub models"),
        ({"model": "o/n", "trust_remote_code": True}, r"40 hexadecimal digits, got None"),
    ],
)
def test_options_that_cannot_be(tiny: Path, options: dict[str, object], said: str):
    with pytest.raises(ConfigError, match=said):
        VLLMEmbedder(**{"model": str(tiny), **options})  # pyright: ignore[reportArgumentType]
