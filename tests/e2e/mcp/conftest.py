"""Servers to speak to: in this process, as a subprocess over stdio, and over HTTP."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import uvicorn
from mcp.client.stdio import StdioServerParameters

from hipporag_torch.service.http import Address, http_app
from hipporag_torch.service.memory_service import MemoryService

from .lab import ROOT, server_over

SCRIPT = ROOT / "scripts" / "serve_mcp.py"
FAST = ("embedder=hashing", "extractor=none", "runtime.cache=false", "runtime.device=cpu")
ServeHttp = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "index"


def program(*arguments: str, env: dict[str, str] | None = None) -> StdioServerParameters:
    """The server as a client starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=[str(SCRIPT), *arguments],
        cwd=str(ROOT),
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **(env or {})},
    )


@contextmanager
def serving(service: MemoryService, *, token_env: str | None = None) -> Iterator[str]:
    """The URL of a server over `service`, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        address = Address(port=port, token_env=token_env, allowed_hosts=["memory.example.org"])
        app = http_app(server_over(service), address, batch_chars=service.limits.batch_chars)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def serve_http() -> ServeHttp:
    return serving
