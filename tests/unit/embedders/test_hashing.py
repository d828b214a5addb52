"""The embedder without a model."""

import os
import subprocess
import sys

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ConfigError

DIGEST = """
import hashlib
from hipporag_torch.embedders.hashing import HashingEmbedder
rows = HashingEmbedder(dim=64).embed(["São Tomé and Príncipe", "東京", "C++ and C#"], "passage")
print(hashlib.sha256(rows.numpy().tobytes()).hexdigest())
"""


def test_every_process_gets_the_same_vectors():
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_text_without_features_is_zero_whatever_the_instruction():
    embedder = HashingEmbedder(instructions={"phrase": "Name: "})
    assert torch.equal(embedder.embed(["", "!?", "\u200d"], "phrase"), torch.zeros(3, 256))


def test_case_and_width_do_not_matter():
    rows = HashingEmbedder().embed(["Straße ABC", "STRASSE ＡＢＣ"], "phrase")
    assert torch.equal(rows[0], rows[1])


def test_scripts_without_spaces_share_parts():
    rows = HashingEmbedder(dim=2048).embed(["東京都庁舎前", "東京都庁舎", "大阪城公園"], "phrase")
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]


def test_names_in_any_script_are_told_apart():
    rows = HashingEmbedder(dim=2048).embed(["Москва", "القاهرة", "서울", "Αθήνα", "नई दिल्ली"], "phrase")
    assert (rows @ rows.T - torch.eye(5)).abs().max() < 0.3


def test_many_texts_are_told_in_chunks():
    calls: list[tuple[str, int, int]] = []
    HashingEmbedder(dim=8).embed(["a"] * 2_500, "fact", lambda *call: calls.append(call))
    assert [done for _, done, _ in calls] == [1_024, 2_048, 2_500]


def test_nothing_is_cut():
    assert HashingEmbedder().truncated(["word " * 100_000], "passage") == [False]


def test_the_dimension_must_be_positive():
    with pytest.raises(ConfigError, match="dim must be at least 1, got 0"):
        HashingEmbedder(dim=0)


def test_an_instruction_must_be_text():
    with pytest.raises(ConfigError, match=r"instructions.fact must be a string, got int"):
        HashingEmbedder(instructions={"fact": 3})  # pyright: ignore[reportArgumentType]


def test_importing_it_loads_no_model_library():
    code = "import sys, hipporag_torch.embedders.hashing, hipporag_torch.embedders.minilm\n"
    code += "assert not {'sentence_transformers', 'transformers', 'huggingface_hub'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
