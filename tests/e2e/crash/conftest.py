"""Zygotes, and the library that makes steps go wrong."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .client import Zygote
from .crash_lab import CrashLab

MakeLab = Callable[[Path, Path], CrashLab]


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """faults.c, compiled. Tests that need it are skipped where it cannot be."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"steps are made to go wrong on Linux alone; this is {sys.platform} {platform.machine()}")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler `cc`, so no step can be made to go wrong")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    command = [compiler, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(library), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    arm = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).faults_arm(b'/tmp', 0, 0, 0) != 0)"
    if subprocess.run([sys.executable, "-c", arm, str(library)], timeout=60).returncode != 0:
        pytest.skip("the kernel lets no process filter its system calls (seccomp), so no step can go wrong")
    return library


@pytest.fixture(scope="session")
def zygote_of(faults: Path) -> Iterator[Callable[[Path], Zygote]]:
    """The zygote of a file of functions; the same file has one for the whole session."""
    with ExitStack() as stack:
        started: dict[Path, Zygote] = {}

        def start(module: Path) -> Zygote:
            if module not in started:
                started[module] = stack.enter_context(Zygote(module, faults=faults))
            return started[module]

        yield start


@pytest.fixture
def crash_lab(zygote_of: Callable[[Path], Zygote], tmp_path: Path) -> MakeLab:
    """Make a lab of a file of functions and a template; see `crash_lab.py`."""
    return lambda module, template: CrashLab(zygote_of(module), template, tmp_path / "lab")
