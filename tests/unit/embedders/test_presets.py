"""The presets: their instructions, and their pooling on tiny weights in place of the real ones."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hydra.utils import get_object

from hipporag_torch.config import conf_dir
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.nv_embed import nv_embed_v2
from hipporag_torch.embedders.suffix import SuffixedEmbedder
from hipporag_torch.errors import BackendError, ConfigError, InputError

from ...tiny_chat_model import save_tiny_chat_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
QUESTION_ROLES = ("question_to_fact", "question_to_passage")


def preset(name: str, **changed: Any) -> dict[str, Any]:
    """The options of a preset, with some of them changed."""
    node = yaml.safe_load((conf_dir() / "embedder" / f"{name}.yaml").read_text("utf-8"))
    options = {key: value for key, value in node.items() if not key.startswith("_")}
    return {**options, **({"device": "cpu"} if "device" in options else {}), **changed}


def target(name: str) -> Any:
    node = yaml.safe_load((conf_dir() / "embedder" / f"{name}.yaml").read_text("utf-8"))
    return get_object(node["_target_"])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat_model(tmp_path_factory.mktemp("presets") / "tiny", context=256)


def pooled_folder(tiny: Path, folder: Path, mode: str) -> Path:
    """The tiny model as sentence-transformers has models: with a pooling module, and unit vectors."""
    folder.mkdir()
    for path in tiny.iterdir():
        (folder / path.name).symlink_to(path)
    kinds = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": row, "name": str(row), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for row, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, f"pooling_mode_{mode}": True})
    )
    (folder / "2_Normalize").mkdir()
    return folder


def hidden(tiny: Path, text: str) -> torch.Tensor:
    """The last layer's vectors of a text's tokens."""
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(tiny)(text, return_tensors="pt")
    with torch.inference_mode():
        return AutoModel.from_pretrained(tiny)(tokens["input_ids"]).last_hidden_state[0]


@pytest.mark.parametrize(
    ("name", "mode", "pooling", "query", "passage"),
    [
        ("qwen3_embedding", "lasttoken", "lasttoken", "Instruct: Given a question,", ""),
        ("e5", "mean_tokens", "mean", "query: ", "passage: "),
        ("bge", "cls_token", "cls", "Represent this sentence for searching relevant passages: ", ""),
    ],
)
def test_a_preset_pools_and_instructs_as_its_models_card_says(
    tiny: Path, tmp_path: Path, name: str, mode: str, pooling: str, query: str, passage: str
):
    folder = pooled_folder(tiny, tmp_path / "model", mode)
    embedder = target(name)(**preset(name, model=str(folder), dim=32, max_tokens=200))
    assert embedder.identity.pooling == pooling
    assert all(embedder.instruction(role).startswith(query) for role in QUESTION_ROLES)
    assert embedder.instruction("passage") == embedder.instruction("fact") == passage
    for role in ("question_to_passage", "passage"):
        # Beside a longer text, so that padding takes part.
        row = embedder.embed(["Where is Oslo?", "Where is Oslo? " * 4], role)[0]
        vectors = hidden(tiny, embedder.instruction(role) + "Where is Oslo?")
        wanted = {"lasttoken": vectors[-1], "mean": vectors.mean(dim=0), "cls": vectors[0]}[pooling]
        torch.testing.assert_close(row, wanted / wanted.norm(), atol=1e-5, rtol=0)


def test_e5_compares_phrases_as_queries():
    assert preset("e5")["instructions"]["phrase"] == "query: "


@pytest.mark.parametrize(("name", "blank"), [("qwen3_embedding", ""), ("nv_embed_v2", " ")])
def test_a_task_stands_in_its_models_own_frame(name: str, blank: str):
    for role in QUESTION_ROLES:
        text = preset(name)["instructions"][role]
        assert text.startswith("Instruct: Given a question, ")
        assert text.endswith(f"\nQuery:{blank}")


@pytest.mark.parametrize("name", ["qwen3_embedding", "e5", "bge", "nv_embed_v2", "text_embedding_3"])
def test_the_options_of_a_preset_bind(name: str):
    inspect.signature(target(name)).bind(**preset(name))
    head = (conf_dir() / "embedder" / f"{name}.yaml").read_text("utf-8").splitlines()[0]
    assert "Not tried here" in head


def test_text_embedding_3_asks_for_its_dimension_and_takes_no_instructions():
    options = preset("text_embedding_3")
    assert options["send_dimensions"] is True
    assert set(options["instructions"].values()) == {""}
    assert target("text_embedding_3")(**options).identity.dim == 1536


def test_our_calls_fit_the_signatures_of_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    load = {"device": "cpu", "trust_remote_code": True, "local_files_only": True}
    inspect.signature(SentenceTransformer).bind("folder", **load)
    encode = ("prompt", "batch_size", "convert_to_tensor", "show_progress_bar")
    inspect.signature(SentenceTransformer.encode).bind(None, ["text"], **dict.fromkeys(encode))


@pytest.mark.parametrize(
    "stated",
    [{}, {"trust_remote_code": True}, {"revision": COMMIT}, {"trust_remote_code": True, "revision": "main"}],
)
def test_nv_embed_runs_no_code_that_was_not_read(stated: dict[str, Any]):
    with pytest.raises(ConfigError, match=r"trust_remote_code=true and the commit that you have read"):
        target("nv_embed_v2")(**preset("nv_embed_v2", **stated))


def test_nv_embed_from_a_folder_goes_all_the_way_to_its_vectors(tiny: Path, tmp_path: Path):
    folder = pooled_folder(tiny, tmp_path / "NV-Embed-v2", "mean_tokens")
    stated = {"model": str(folder), "trust_remote_code": True, "max_tokens": 200}
    embedder = target("nv_embed_v2")(**preset("nv_embed_v2", **stated))
    assert (embedder.identity.name, embedder.identity.dim) == ("NV-Embed-v2 + </s>", 4096)
    with pytest.raises(BackendError, match="dim=4096, but its vectors have 32 numbers"):
        embedder.embed(["a"], "passage")
    pinned = nv_embed_v2(revision=COMMIT, trust_remote_code=True, device="cpu", instructions={"fact": "f"})
    assert pinned.instruction("fact") == "f"


def test_a_suffix_stands_behind_every_text():
    plain = HashingEmbedder(dim=32, instructions={"fact": "fact: "})
    suffixed = SuffixedEmbedder(embedder=plain, suffix=" end")
    assert torch.equal(suffixed.embed(["a", "b"], "fact"), plain.embed(["a end", "b end"], "fact"))
    assert suffixed.identity != plain.identity
    assert suffixed.truncated(["a"], "fact") == [False]
    with pytest.raises(InputError, match="pass a list"):
        suffixed.embed("a", "fact")
    with pytest.raises(InputError, match="text 0 must be a string"):
        suffixed.embed([3], "fact")  # pyright: ignore[reportArgumentType]
