"""The server as a client starts it: a process that speaks over its stdin and stdout."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from hipporag_torch import HippoRAG

from .conftest import FAST, SCRIPT, program
from .lab import DOCUMENTS, ROOT, call, refused

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SECRET = "sk-secret-of-the-endpoint"


def tool_call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


class Process:
    """A server that is spoken to line by line."""

    def __init__(self, command: Sequence[str]) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        self.popen = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.say(INITIALIZE)
        assert self.hear(0)["result"]["serverInfo"]["name"] == "hipporag-torch"
        self.say(READY)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.wait(20)
        assert self.popen.stdout
        self.popen.stdout.close()
        self.close_stdin()

    def close_stdin(self) -> None:
        assert self.popen.stdin
        # What is still buffered has nobody to read it.
        with suppress(BrokenPipeError):
            self.popen.stdin.close()

    def say(self, message: object) -> None:
        assert self.popen.stdin
        line = message if isinstance(message, str) else json.dumps(message)
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def hear(self, number: int) -> dict[str, Any]:
        """The answer to a request; every line before it is JSON-RPC too."""
        assert self.popen.stdout
        for line in self.popen.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
        raise AssertionError("the server has ended")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_process_is_asked_written_to_and_shows_its_configuration(
    directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# Glaciers\n\nTove Lund maps glaciers for Northwind Press.\n")
    flags = ("--save-dir", str(directory), "--root", str(tmp_path / "notes"))
    secrets = (f"+llm.headers.X-Key={SECRET}", f"llm.base_url=https://user:{SECRET}@llm.example.org/v1")
    async with Client(program(*flags, *FAST, *secrets)) as client:
        assert (await call(client, "index", documents=DOCUMENTS))["added"]["passages_added"] == 3
        synced = await call(client, "index_folder", path=str(tmp_path / "notes"))
        assert synced["counts"] == {"added": 1}
        found = await call(client, "retrieve", query="Who maps glaciers?", top_k=1)
        assert found["passages"][0]["sources"][0]["metadata"]["path"] == "a.md"
        assert (await call(client, "rag_qa", question="Who maps glaciers?"))["answer"]
        assert "outside of the folders" in await refused(client, "index_folder", path=str(tmp_path))
        shown = (await client.read_resource("hipporag://config")).contents[0].text  # type: ignore[union-attr]
        assert str(directory) in shown
        assert SECRET not in shown
        assert "llm.example.org/v1" in shown


@pytest.mark.slow
def test_initialize_is_answered_at_once_and_what_is_no_json_rpc_is_survived(directory: Path) -> None:
    with Process([sys.executable, str(SCRIPT), "--index", str(directory), *FAST]) as server:
        for broken in ("{not json", '"text"', "[]", '{"jsonrpc": "2.0", "id": 7}', "\x00"):
            server.say(broken)
        server.say({"jsonrpc": "2.0", "id": 1, "method": "no/such"})
        assert server.hear(1)["error"]["code"] == -32601
        server.say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 5}})
        assert "error" in server.hear(2)
        server.say(tool_call(3, "retrieve", query="Who?"))
        assert server.hear(3)["result"]["structuredContent"]["route"] == "none:empty_index"


def wait_until_staged(directory: Path, count: int) -> None:
    """Wait until so many extractions of a write that runs are on the disk."""
    deadline = time.monotonic() + 30
    with HippoRAG.open(directory, read_only=True) as memory:
        while (disk := memory.stats().disk) is None or disk.staged_extractions < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.slow
def test_killed_in_the_middle_of_a_write_nothing_is_lost_or_paid_for_twice(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.e2e.mcp.lab", str(directory), "0.02"]
    many = [f"Tove saw glacier{number}" for number in range(100)]
    with Process(command) as server:
        server.say(tool_call(1, "index", documents=DOCUMENTS))
        assert not server.hear(1)["result"]["isError"]
        server.say(tool_call(2, "index", documents=many))
        wait_until_staged(directory, 10)
        server.say(tool_call(3, "index_stats"))
        assert server.hear(3)["result"]["structuredContent"]["writing"] == "index"
        server.popen.send_signal(signal.SIGKILL)
        server.popen.wait(20)
    with HippoRAG.open(directory) as memory:
        assert {passage.text for passage in memory.index.passages} == {row["text"] for row in DOCUMENTS}
        assert not memory.check().findings
        disk = memory.stats().disk
        assert disk is not None
        staged = disk.staged_extractions
    with Process(command) as server:
        server.say(tool_call(4, "index", documents=many))
        added = server.hear(4)["result"]["structuredContent"]["added"]
        assert added["passages_added"] == 100
        assert added["usage"]["calls"] == 2 * (100 - staged)
    with HippoRAG.open(directory, read_only=True) as memory:
        assert len(memory.index.passages) == 103
        assert not memory.check().findings


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "sigterm"])
def test_told_to_end_in_the_middle_of_a_write_it_rolls_back_and_is_gone(directory: Path, how: str) -> None:
    with Process([sys.executable, "-m", "tests.e2e.mcp.lab", str(directory), "0.02"]) as server:
        server.say(tool_call(1, "index", documents=DOCUMENTS))
        assert not server.hear(1)["result"]["isError"]
        server.say(tool_call(2, "index", documents=[f"Tove saw glacier{number}" for number in range(500)]))
        server.say(tool_call(3, "index_stats"))
        assert server.hear(3)["result"]["structuredContent"]["writing"] == "index"
        if how == "eof":
            server.close_stdin()
        else:
            server.popen.send_signal(signal.SIGTERM)
        # Far less than the write would take.
        assert server.popen.wait(8) == (0 if how == "eof" else 128 + signal.SIGTERM)
    with HippoRAG.open(directory) as memory:
        assert len(memory.index.passages) == 3
        disk = memory.stats().disk
        assert disk is not None
        assert disk.interrupted == ""
