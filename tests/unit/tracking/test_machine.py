import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from hipporag_torch.tracking.machine import git_state, machine_facts, memory, versions


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("outputs\n")
    git(folder, "add", ".")
    git(
        folder,
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@x",
        "-c",
        "commit.gpgsign=false",
        "commit",
        "-q",
        "-m",
        "first",
    )
    return folder


def test_the_commit_and_whether_anything_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD").strip()
    assert git_state(checkout) == {"commit": commit, "dirty": False}
    (checkout / "outputs").mkdir()
    assert git_state(checkout) == {"commit": commit, "dirty": False}
    (checkout / "new.py").write_text("")
    assert git_state(checkout) == {"commit": commit, "dirty": True}


def test_variables_of_a_hook_do_not_name_another_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = git_state(checkout)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert git_state(checkout) == before


def test_what_only_lies_in_a_checkout_is_none(checkout: Path, tmp_path: Path) -> None:
    installed = checkout / "outputs"
    installed.mkdir()
    assert git_state(installed) is None
    assert git_state(tmp_path) is None


def test_without_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert git_state(checkout) is None


def test_versions_are_those_installed() -> None:
    told = versions()
    assert told["packages"]["torch"] == version("torch")
    assert told["packages"]["hipporag-torch"] == version("hipporag-torch")
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))
    assert json.loads(json.dumps(told)) == told


def test_facts_of_the_machine_are_plain() -> None:
    facts = machine_facts()
    assert facts["threads"] == torch.get_num_threads()
    assert 1 <= facts["cpus"] <= (os.cpu_count() or 1)
    assert facts["device"] == "cpu"
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.skipif(sys.platform != "linux", reason="the memory in use is read from Linux's /proc")
def test_memory_grows_with_what_is_held() -> None:
    before = memory()
    held = b"x" * 50_000_000
    after = memory()
    assert 40e6 < after["rss_bytes"] - before["rss_bytes"] < 60e6
    assert after["peak_rss_bytes"] >= after["rss_bytes"] - 1e6
    del held
    assert memory()["rss_bytes"] < after["rss_bytes"] - 40e6


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_memory_of_a_gpu_is_that_of_its_tensors() -> None:
    before = memory("cuda")
    held = torch.empty(1 << 20, device="cuda")
    assert memory("cuda")["gpu_bytes"] - before["gpu_bytes"] == held.nbytes
    assert memory("cuda")["peak_gpu_bytes"] >= memory("cuda")["gpu_bytes"]
    assert machine_facts("cuda")["device_name"] == torch.cuda.get_device_name()
