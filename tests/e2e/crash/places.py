"""Places that go wrong by themselves: a disk that is small, and one that cannot be written.

They are mounts that only the zygote sees, in a namespace of its own, so no privilege is needed; what
is on the small disk can be looked at by functions alone.

    with small_disk(module, folder, mebibytes=8) as (zygote, disk):
        report = zygote.run("add_two", disk / "index", template=template, free=40_000)
        assert report.raised.startswith("StoreError")
        assert zygote.run("state", disk / "index", free=1 << 20).result == before

    with read_only(module, directory) as zygote:
        assert zygote.run("state", directory).result == before
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .client import Zygote

_NAMESPACE = ["unshare", "--map-root-user", "--mount"]


@contextmanager
def small_disk(module: Path, folder: Path, *, mebibytes: int) -> Iterator[tuple[Zygote, Path]]:
    """A zygote with a tmpfs of its own over `folder`, and that folder. Skips where there are no namespaces.

    `free` of `Zygote.run` then says how much of it is left, to the block of 4096 bytes.
    """
    require_namespaces(folder)
    mount = f'mount -t tmpfs -o size={mebibytes}m none "$0" && exec "$@"'
    with Zygote(module, wrap=[*_NAMESPACE, "sh", "-c", mount, str(folder)]) as zygote:
        yield zygote, folder


@contextmanager
def read_only(module: Path, directory: Path) -> Iterator[Zygote]:
    """A zygote that cannot write to `directory`, whatever it may do elsewhere. Skips as `small_disk` does."""
    require_namespaces(directory)
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    with Zygote(module, wrap=[*_NAMESPACE, "sh", "-c", mount, str(directory)]) as zygote:
        yield zygote


def require_namespaces(folder: Path) -> None:
    """Skip the test, with the reason, where a process cannot have mounts of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare`, so no mounts of our own can be made")
    command = [*_NAMESPACE, "mount", "-t", "tmpfs", "none", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"no mounts of our own can be made here: {done.stderr.strip()}")
