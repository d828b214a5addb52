"""Runs scripts in forks of one process that has paid for the imports: 0.2 s a run instead of 4.

Not a test: `conftest.py` starts it. A line of JSON in, [script, arguments, stdout file, stderr file]; the
exit status out.
"""

import json
import os
import runpy
import sys
import traceback

# What the scripts import, so that no fork has to.
import bm25s  # noqa: F401
import huggingface_hub  # noqa: F401
import hydra  # noqa: F401
import rich.progress  # noqa: F401

import hipporag_torch.config
import hipporag_torch.dry_run
import hipporag_torch.evaluation
import hipporag_torch.extractors.openie
import hipporag_torch.fact_filters
import hipporag_torch.journal
import hipporag_torch.llms.scripted
import hipporag_torch.opening
import hipporag_torch.readers
import hipporag_torch.retrievers.bm25
import hipporag_torch.retrievers.hipporag  # noqa: F401


def run(script: str, arguments: list[str], out: str, err: str) -> int:
    for path, stream in ((out, sys.stdout), (err, sys.stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream.fileno())
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        return 1
    return 0


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = run(*json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
    sys.stdout.flush()
