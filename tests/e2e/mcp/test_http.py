"""Streamable HTTP: the real client, and who is let in."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .conftest import FAST, SCRIPT, ServeHttp
from .lab import DOCUMENTS, ROOT, Model, call, refused, service_over

TOKEN = "a-token-of-more-than-16-characters"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    """The token, in the environment as a person would put it there."""
    monkeypatch.setenv("HIPPORAG_TOKEN", TOKEN)
    return TOKEN


def post(url: str, body: object = INITIALIZE, **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with httpx2.Client(trust_env=False, timeout=20) as client:
        return client.post(url, content=content, headers={**HEADERS, **headers})


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_work_over_http_with_progress(directory: Path, serve_http: ServeHttp, mode: str) -> None:
    seen: list[float] = []

    async def advance(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    with service_over(directory) as service, serve_http(service) as url:
        async with Client(url, mode=mode) as client:
            result = await client.call_tool("index", {"documents": DOCUMENTS}, progress_callback=advance)
            assert not result.is_error
            assert seen
            assert (await call(client, "retrieve", query="Who founded Northwind?"))["passages"]
            assert (await call(client, "rag_qa", question="Who founded Northwind?"))["answer"]
            assert (await call(client, "explain", query="Who founded Northwind?"))["nodes"]
            assert (await call(client, "index_stats"))["passages"] == 3
            assert "no source" in await refused(client, "update", source_id="x", documents=["a"])
            assert "at most 1,000,000" in await refused(client, "index", documents=["x" * 10_000_000])
            assert (await call(client, "delete", source_ids=["ada.md"]))["removed"]["passages_removed"]
            assert "index: here" in (await client.read_resource("hipporag://config")).contents[0].text  # type: ignore


@pytest.mark.anyio
async def test_with_a_token_only_who_shows_it_is_let_in(
    directory: Path, serve_http: ServeHttp, token: str
) -> None:
    with service_over(directory) as service, serve_http(service, token_env="HIPPORAG_TOKEN") as url:
        for shown in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {token}"}):
            answer = post(url, **shown)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert token not in answer.text
        assert httpx2.get(url, trust_env=False).status_code == 401
        assert post(url, Authorization=f"Bearer {token}").status_code == 200
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert (await call(client, "index_stats"))["passages"] == 0


def test_a_foreign_origin_or_host_is_turned_away(directory: Path, serve_http: ServeHttp) -> None:
    with service_over(directory) as service, serve_http(service) as url:
        assert post(url, Origin="https://evil.example.com").status_code == 403
        assert post(url, Origin="http://127.0.0.1.evil.example.com").status_code == 403
        assert post(url, Host="evil.example.com").status_code == 421
        assert post(url, Host="localhost.evil.example.com:80").status_code == 421
        assert post(url, Origin="http://localhost:3000").status_code == 200
        assert post(url, Host="memory.example.org").status_code == 200
        assert post(url).status_code == 200
        modern = {"Mcp-Protocol-Version": "2026-07-28", "Origin": "https://evil.example.com"}
        assert post(url, **modern).status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{not json", 400),
        (b"[]", 400),
        ({"jsonrpc": "1.0", "id": 1, "method": "initialize"}, 400),
        (b"x" * 60_000_000, 413),
    ],
    ids=["no json", "empty batch", "another version", "too large"],
)
def test_a_malformed_request_is_refused_and_the_server_goes_on(
    directory: Path, serve_http: ServeHttp, body: object, status: int
) -> None:
    with service_over(directory) as service, serve_http(service) as url:
        assert post(url, body).status_code == status
        assert post(url).status_code == 200


@pytest.mark.anyio
async def test_a_client_that_hangs_up_stops_its_write(directory: Path, serve_http: ServeHttp) -> None:
    go = threading.Event()
    model = Model(before=lambda: go.wait(10) and None)
    with service_over(directory, model) as service, serve_http(service) as url:
        async with Client(url) as client:
            with anyio.move_on_after(1.0):
                await call(client, "index", documents=DOCUMENTS)
            go.set()
            stats = await call(client, "index_stats")
            while stats["writing"]:
                stats = await call(client, "index_stats")
            assert stats["passages"] == 0


def launched(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "env", "said"),
    [
        (["--host", "0.0.0.0"], {}, "needs a bearer token"),
        (
            ["--host", "192.0.2.1", "--token-env", "HIPPORAG_TOKEN"],
            {},
            "of --token-env is not set",
        ),
        (["--host", "::", "--token-env", "HIPPORAG_TOKEN"], {"HIPPORAG_TOKEN": "hunter2"}, "16 or more"),
    ],
)
def test_a_server_that_everyone_could_write_to_does_not_start(
    directory: Path, flags: list[str], env: dict[str, str], said: str
) -> None:
    done = launched("--index", str(directory), "--transport", "http", *flags, *FAST, **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ConfigError: ")
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert not directory.exists()


@pytest.mark.slow
def test_a_launched_server_asks_for_its_token_and_ends_with_sigterm(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    flags = ["--index", str(directory), "--transport", "http", "--port", str(port)]
    flags += ["--token-env", "HIPPORAG_TOKEN", *FAST]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HIPPORAG_TOKEN": TOKEN}
    url, command = f"http://127.0.0.1:{port}/mcp", [sys.executable, str(SCRIPT), *flags]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        deadline = time.monotonic() + 30
        while True:
            try:
                assert post(url).status_code == 401
                break
            except httpx2.ConnectError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert post(url, Authorization=f"Bearer {TOKEN}").status_code == 200
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=20)
    assert server.returncode == 128 + signal.SIGTERM
    assert out == ""
    assert TOKEN not in err
