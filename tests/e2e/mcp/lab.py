"""What the tests of the server share: documents, a service with a model of their own, and calls of tools.

As a program it is a server whose model takes its time: lab.py DIRECTORY SECONDS, or over HTTP with a PORT.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.mcpserver import MCPServer

from hipporag_torch import HippoRAG
from hipporag_torch.chat import Prompt
from hipporag_torch.chunkers import WholeDocument
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.readers import ExtractiveReader
from hipporag_torch.service.confirmation import Confirmations
from hipporag_torch.service.http import Address, http_app, serve_http
from hipporag_torch.service.launch import end_with
from hipporag_torch.service.limits import Limits, Roots
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.server import build_server
from hipporag_torch.service.sharing import SharedEmbedder
from hipporag_torch.service.views import Opened
from hipporag_torch.store.store import Store

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [
    {"text": "Ada Vale founded Northwind", "source_id": "ada.md", "metadata": {"date": "2024-05-01"}},
    {"text": "Northwind prints atlases", "source_id": "northwind.md"},
    {"text": "Bergen borders Askoy", "source_id": "bergen.md"},
]


class Model:
    """Says that a passage of three words or more states them, after `seconds`; `asked` counts its calls."""

    def __init__(self, seconds: float = 0.0, before: Callable[[], None] = lambda: None) -> None:
        self._seconds, self._before = seconds, before
        self.chat = ScriptedChatModel(replies=self._reply)

    @property
    def asked(self) -> int:
        return self.chat.calls

    def _reply(self, prompt: Prompt) -> str:
        self._before()
        time.sleep(self._seconds)
        passage = prompt[-1].text.strip().splitlines()
        lines = (line.split() for line in passage if ":" not in line)
        words = next(line for line in lines if len(line) >= 3)
        if "triples" in prompt[0].text.lower() and "Named entities" in prompt[-1].text:
            return json.dumps({"triples": [words[:3]]})
        return json.dumps({"entities": [words[0], words[2]]})


def service_over(
    directory: Path,
    model: Model | None = None,
    *,
    read_only: bool = False,
    above: int | None = 50,
    roots: Sequence[Path] = (),
    limits: Limits | None = None,
) -> MemoryService:
    chat = (model or Model()).chat

    def opened() -> Opened:
        embedder = SharedEmbedder(embedder=HashingEmbedder(dim=64))
        extractor = OpenIEExtractor(llm=chat)
        chunker = WholeDocument()
        memory = HippoRAG.open(
            directory, embedder=embedder, extractor=extractor, chunker=chunker, read_only=read_only
        )
        return Opened(memory, extractor, ExtractiveReader(embedder=embedder), chunker)

    return MemoryService(
        store=Store(directory, read_only=read_only),
        open_memory=opened,
        confirmations=Confirmations(above=above),
        roots=Roots(roots),
        limits=limits,
    )


def server_over(service: MemoryService) -> MCPServer:
    return build_server(service, config=lambda: "index: here\n", version="0.0")


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Why a tool does not do it."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text  # type: ignore[union-attr]


def digest_of(directory: Path) -> str:
    """Of every name below a directory, every byte, and when it was last written."""
    told = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        told.update(f"{path.relative_to(directory)} {path.stat().st_mtime_ns}\n".encode())
        if path.is_file():
            told.update(path.read_bytes())
    return told.hexdigest()


if __name__ == "__main__":
    with service_over(Path(sys.argv[1]), Model(float(sys.argv[2])), above=None) as slow:
        if sys.argv[3:]:
            address = Address(port=int(sys.argv[3]))
            serve_http(http_app(server_over(slow), address, batch_chars=1_000_000), address)
        else:
            end_with(slow)
            server_over(slow).run("stdio")
