"""A server that cannot write: no tool for it, and not a byte under the index, whoever asks what."""

import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from hipporag_torch import Document

from ..crash.places import require_namespaces
from .conftest import FAST, SCRIPT, program
from .lab import DOCUMENTS, ROOT, call, digest_of, refused, server_over, service_over

READS = {"retrieve", "rag_qa", "explain", "index_stats"}


@pytest.fixture
def filled(directory: Path) -> Path:
    with service_over(directory) as service:
        service.index([Document(row["text"], row["source_id"]) for row in DOCUMENTS]).result(20)
    return directory


async def ask_everything(client: Client) -> None:
    assert {tool.name for tool in (await client.list_tools()).tools} == READS
    assert (await call(client, "retrieve", query="Who founded Northwind?"))["passages"]
    assert (await call(client, "rag_qa", question="Who founded Northwind?"))["answer"]
    assert (await call(client, "explain", query="Who founded Northwind?"))["passages"]
    stats = await call(client, "index_stats")
    assert (stats["passages"], stats["read_only"]) == (3, True)
    for tool, arguments in (
        ("index", {"documents": ["a"]}),
        ("update", {"source_id": "ada.md", "documents": ["a"]}),
        ("delete", {"source_ids": ["ada.md"]}),
        ("index_folder", {"path": "/"}),
    ):
        assert f"Unknown tool: {tool}" in await refused(client, tool, **arguments)


@pytest.mark.anyio
async def test_in_process_nothing_under_the_index_changes(filled: Path) -> None:
    before = digest_of(filled)
    with service_over(filled, read_only=True) as service:
        async with Client(server_over(service)) as client:
            await ask_everything(client)
    assert digest_of(filled) == before


@pytest.mark.slow
@pytest.mark.anyio
async def test_as_a_process_nothing_is_written_caches_included(filled: Path, tmp_path: Path) -> None:
    before, cache = digest_of(filled), tmp_path / "cache"
    flags = ("embedder=hashing", "extractor=none", "runtime.cache=true", f"runtime.cache_dir={cache}")
    async with Client(program("--index", str(filled), "--read-only", "embedder.dim=64", *flags)) as client:
        await ask_everything(client)
    assert digest_of(filled) == before
    assert not cache.exists()


@pytest.mark.slow
@pytest.mark.anyio
async def test_over_a_mount_that_cannot_be_written(filled: Path) -> None:
    require_namespaces(filled.parent)
    mount = (
        'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/x" 2>/dev/null && exec "$@"'
    )
    command = ["--map-root-user", "--mount", "sh", "-c", mount, str(filled), sys.executable, str(SCRIPT)]
    flags = ["--index", str(filled), "--read-only", *FAST, "embedder.dim=64"]
    async with Client(
        StdioServerParameters(command="unshare", args=[*command, *flags], cwd=str(ROOT))
    ) as client:
        await ask_everything(client)


@pytest.mark.slow
def test_a_read_only_server_makes_no_index(directory: Path) -> None:
    async def asked() -> str:
        async with Client(program("--index", str(directory), "--read-only", *FAST)) as client:
            return await refused(client, "retrieve", query="Who?")

    assert "there is no index" in anyio.run(asked)
    assert not directory.exists()
