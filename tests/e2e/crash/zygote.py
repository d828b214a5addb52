"""Runs functions on directories in forks of one process that has paid for the imports, with faults injected.

Not a test: `client.py` starts it, as `zygote.py MODULE [FAULTS]`. MODULE is a file of functions that take a
directory (pathlib.Path) and give nothing or what JSON can hold; it is imported once, with all that it
needs. FAULTS is `faults.c`, compiled. A line of JSON in, with the arguments of `Zygote.run`; a line out,
with the fields of `Report`. What the functions print goes to standard error.
"""

import ctypes
import errno
import importlib.util
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# How a step goes wrong, in the order of `enum mode` in faults.c; "off": no step is even counted.
MODES = ["count", "kill", "tear", "fail", "short", "full"]
Functions = dict[str, Callable[[Path], Any]]


def load(module: str) -> Functions:
    """The functions of a file, which is imported as a module of its own name."""
    spec = importlib.util.spec_from_file_location(Path(module).stem, module)
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # The threads of a pool would not be there after a fork.
    return vars(loaded)


def prepare(request: dict[str, Any]) -> None:
    """Copy the template, and leave as much free space as is asked for."""
    directory, free = Path(request["directory"]), request["free"]
    ballast = directory.parent / "ballast"
    if free is not None:
        ballast.unlink(missing_ok=True)
    if request["template"]:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(request["template"], directory, symlinks=True)
    if free is not None:
        disk = os.statvfs(directory)
        left = disk.f_bavail * disk.f_frsize
        assert left > free, f"{left} bytes are free beside {directory}, fewer than the {free} that shall be"
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, left - free)


def load_faults(library: str) -> ctypes.CDLL:
    faults = ctypes.CDLL(library, use_errno=True)
    faults.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    faults.faults_trace.restype = ctypes.c_char_p
    faults.faults_count.restype = ctypes.c_long
    return faults


def work(functions: Functions, faults: ctypes.CDLL | None, request: dict[str, Any], pipe: int) -> None:
    """What a fork does: say that it starts, do it, and say how it went."""
    function, directory = functions[request["function"]], Path(request["directory"]).resolve()
    report: dict[str, Any] = {}
    if faults:
        code = getattr(errno, request["error"]) if request["error"] else 0
        if faults.faults_arm(os.fsencode(directory), request["nth"], MODES.index(request["mode"]), code):
            raise OSError(ctypes.get_errno(), f"faults.c cannot be armed for {directory}")
    os.write(pipe, b"\n")
    try:
        report["result"] = function(directory)
    except BaseException as error:  # noqa: BLE001
        report["raised"] = f"{type(error).__name__}: {error}"
        report["traceback"] = traceback.format_exc()
    if faults:
        faults.faults_disarm()
    os.write(pipe, json.dumps(report).encode())


def watch(child: int, pipe: int, kill_after: float | None, timeout: float) -> tuple[bytes, bool]:
    """What the fork says until it ends or its time is over, and whether it was still at work then."""
    said, deadline = b"", time.monotonic() + timeout
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return said, False
        if not said and kill_after is not None:
            deadline = time.monotonic() + kill_after
        said += part
    os.kill(child, signal.SIGKILL)
    return said, True


def serve(functions: Functions, faults: ctypes.CDLL | None, request: dict[str, Any]) -> dict[str, Any]:
    prepare(request)
    if request["mode"] == "off":
        faults = None
    ours, theirs = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            work(functions, faults, request, theirs)
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(theirs)
    said, late = watch(child, ours, request["kill_after"], request["timeout"])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(ours)
    report = {"result": None, "raised": "", "traceback": "", "status": status, "trace": [], "count": 0}
    report["seconds"] = time.monotonic() - started
    report["timed_out"] = late and request["kill_after"] is None
    report |= json.loads(said) if said.strip() and status == 0 else {}
    if faults:
        trace = faults.faults_trace()
        report["count"] = faults.faults_count()
        report["trace"] = None if trace is None else os.fsdecode(trace).split("\n")[:-1]
    return report


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    functions = load(sys.argv[1])
    faults = load_faults(sys.argv[2]) if len(sys.argv) > 2 else None
    for line in sys.stdin:
        answers.write(json.dumps(serve(functions, faults, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
