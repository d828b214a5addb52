"""The MCP server over a memory: its tools, and the configuration as a resource."""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations

from hipporag_torch.errors import HippoRAGError
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.tools import MemoryTools
from hipporag_torch.service.write_queue import WriteStopped

CONFIG_URI = "hipporag://config"
_INSTRUCTIONS = """\
A memory of documents that are asked in natural language, with a graph of what they state.
retrieve gives passages with their sources, rag_qa an answer: cite the sources. index adds documents; update
replaces what a source holds, in one step; never delete and index again for that. Where many passages are new,
ask with dry_run what a write would cost."""

# Title, and whether it may change something that is there already.
_READS = {
    "retrieve": "Find passages",
    "rag_qa": "Answer a question",
    "explain": "Explain what was found",
    "index_stats": "State of the memory",
}
_WRITES = {
    "index": ("Add documents", False),
    "update": ("Replace a source", True),
    "delete": ("Remove sources or passages", True),
    "index_folder": ("Sync a folder", True),
}


class MemoryServer(MCPServer):
    """The SDK's server, which also refuses arguments that a tool does not have: the SDK ignores them."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tool = next((tool for tool in await self.list_tools() if tool.name == name), None)
        known = tool.input_schema.get("properties", {}) if tool is not None else arguments
        if unknown := sorted(arguments.keys() - known.keys()):
            raise ToolError(
                f"{name} has no argument {', '.join(unknown)}; it takes {', '.join(known) or 'none'}"
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            # What the library raised on purpose tells the client what to do; the rest stays here, in the log.
            if isinstance(error.__cause__, HippoRAGError | WriteStopped):
                raise ToolError(str(error.__cause__)) from error
            raise


def build_server(
    service: MemoryService, *, config: Callable[[], str], max_reads: int = 16, version: str = ""
) -> MCPServer:
    """A server over `service`, which the caller starts and closes.

    config: the configuration as YAML, secrets removed. max_reads: reads that are worked on at once.
    """
    tools = MemoryTools(service, max_reads=max_reads)
    names = [*_READS] if service.read_only else [*_READS, *_WRITES]
    server = MemoryServer(
        "hipporag-torch",
        title="HippoRAG memory",
        instructions=_INSTRUCTIONS,
        version=version,
        tools=[_tool(name, getattr(tools, name)) for name in names],
        log_level="WARNING",
    )
    server.add_resource(
        FunctionResource(
            uri=CONFIG_URI,
            name="config",
            title="Configuration",
            description="How this server and its memory are configured, as YAML, secrets removed.",
            mime_type="application/yaml",
            fn=config,
        )
    )
    return server


def _tool(name: str, function: Callable[..., Any]) -> Tool:
    title, destroys = _WRITES.get(name) or (_READS[name], False)
    hints = ToolAnnotations(
        title=title,
        read_only_hint=name in _READS,
        destructive_hint=destroys,
        # The same call again finds it done, or is refused for its used confirm.
        idempotent_hint=True,
        # Nothing but the memory is reached; open would be a search of the web.
        open_world_hint=False,
    )
    tool = Tool.from_function(function, name=name, title=title, annotations=hints)
    tool.parameters["additionalProperties"] = False
    return tool
