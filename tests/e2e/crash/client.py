"""The test's end of `zygote.py`: asks for a function to be run in a fork, and reads how it went."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
CONTENT = {"write", "pwrite", "writev", "sendfile"}
SPACE = {"create", "mkdir", "link", "symlink", "fallocate"}


@dataclass(frozen=True)
class Step:
    """A durable step, as `faults.c` saw it. Paths are relative to the directory, "." is itself.

    call: the system call, without variants; "create" is an open that makes a file, "open-truncate" one that
    empties it, "open" any other with O_CREAT; "unlink" is of directories too. detail: the new path of a
    rename or a link, else the number of bytes.
    """

    number: int
    call: str
    path: str
    detail: str

    @property
    def writes(self) -> bool:
        """Whether it can be torn."""
        return self.call in CONTENT and self.detail != "0"

    @property
    def takes_space(self) -> bool:
        """Whether a full disk refuses it."""
        return self.writes or self.call in SPACE

    def __str__(self) -> str:
        return f"{self.call} {self.path} {self.detail}".removesuffix(" 0")


@dataclass(frozen=True)
class Report:
    """How a function went in its fork.

    result: what it gave; raised: "StoreError: message" and traceback where it raised; status: the exit
    status, -9 if it was killed; seconds: from the fork to its end; steps: what it did to the directory.
    """

    result: Any
    raised: str
    traceback: str
    status: int
    timed_out: bool
    seconds: float
    steps: tuple[Step, ...]

    @property
    def killed(self) -> bool:
        return self.status == -9 and not self.timed_out

    @property
    def completed(self) -> bool:
        return self.status == 0 and not self.raised

    def completed_or_fail(self, what: str) -> Any:
        """The result, or an AssertionError that says why there is none."""
        assert not self.timed_out, f"{what} did not end in time"
        assert self.status == 0, f"{what} ended with status {self.status}"
        assert not self.raised, f"{what} raised {self.raised}\n{self.traceback}"
        return self.result


class Zygote:
    """A process that has imported `module`, and runs its functions in forks. A context manager.

    faults: the compiled faults.c, without which no step is seen and none can go wrong.
    wrap: a command that starts the process, for example in a namespace of its own.
    """

    def __init__(self, module: Path, *, faults: Path | None = None, wrap: Sequence[str] = ()) -> None:
        arguments = [module] if faults is None else [module, faults]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._faults = faults
        self._process = subprocess.Popen(
            [*wrap, sys.executable, str(Path(__file__).with_name("zygote.py")), *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **threads},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__(None, None, None)

    def run(
        self,
        function: str,
        directory: Path,
        *,
        template: Path | None = None,
        mode: str | None = None,
        nth: int = 0,
        error: str = "",
        kill_after: float | None = None,
        free: int | None = None,
        timeout: float = 60.0,
    ) -> Report:
        """Run a function of the module on `directory`, in a fork.

        template: what `directory` is made a copy of first.
        mode, nth, error: which step goes wrong, and how (see `MODES` in zygote.py); error is a name from
            `errno`. By default steps are counted, if there is a faults.c. Syncing takes no time then.
        kill_after: kill it so many seconds after its start.
        free: how many bytes the disk is to have left; only on a disk of its own, see `places.small_disk`.
        timeout: in seconds; what is at work then is killed.
        """
        mode = mode or ("count" if self._faults else "off")
        assert self._faults or mode == "off", f"mode {mode} needs faults.c"
        request = {
            "function": function,
            "directory": str(directory),
            "mode": mode,
            "nth": nth,
            "error": error,
        }
        request |= {"template": template and str(template), "kill_after": kill_after, "free": free}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({**request, "timeout": timeout}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the zygote ended with status {self._process.wait()}; its standard error says why"
        told = json.loads(answer)
        trace, count = told.pop("trace"), told.pop("count")
        assert trace is not None, f"{function} took {count} steps, more than the trace of faults.c holds"
        steps = tuple(Step(number, *line.split("\t")) for number, line in enumerate(trace, start=1))
        assert len(steps) == count, f"{function} took {count} steps, {len(steps)} are in the trace"
        return Report(**told, steps=steps)
