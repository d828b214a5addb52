"""A real OpenAI-compatible server: llama.cpp's, with a small model from a package. Needs no network.

`python llm_server.py MODEL.gguf PORT KEY NAME`; port 0 takes a free one. Prints its address once it answers,
and ends with its standard input, so that it never outlives the process that started it.
"""

import sys

from xllamacpp import CommonParams, Server


def parameters(model: str, port: str, key: str, name: str) -> CommonParams:
    params = CommonParams()
    params.model.path = model
    params.model_alias = {name}
    params.hostnames, params.port = ["127.0.0.1"], int(port)
    params.api_keys = [key]
    # The context is divided among the slots.
    params.n_parallel, params.n_ctx = 2, 2 * 1024
    # Several threads wait for each other by spinning, which stands still on a machine that is busy.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return params


if __name__ == "__main__":
    server = Server(parameters(*sys.argv[1:]))
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
