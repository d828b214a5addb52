"""Starting the server: hipporag-torch-mcp --index DIR [flags] [key=value …]

In stdio mode stdout belongs to the protocol: nothing else may be written there.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib import metadata
from types import FrameType

import yaml
from omegaconf import DictConfig

from hipporag_torch.config import plain, stated_groups
from hipporag_torch.errors import ConfigError, HippoRAGError
from hipporag_torch.flags import composed, model_flags
from hipporag_torch.run_config import resolved_config
from hipporag_torch.service.loading import build_service
from hipporag_torch.service.memory_service import MemoryService

_log = logging.getLogger(__name__)
_TRANSPORTS = ("stdio", "http")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client or a signal ends it; the exit status. A wrong setting is one sentence and 1."""
    asked = parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    try:
        cfg, stated = configured(asked)
        _require_mcp()
        return _serve(cfg, stated)
    except HippoRAGError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


def configured(asked: argparse.Namespace) -> tuple[DictConfig, frozenset[str]]:
    """The config that the flags and overrides describe, and the groups that they name."""
    overrides = [*asked.overrides]
    if wrong := [text for text in overrides if "=" not in text]:
        raise ConfigError(f"{wrong[0]!r} is neither a flag nor a key=value; see --help")
    stated = stated_groups(overrides)
    groups, chosen = model_flags(
        llm=asked.llm, llm_base_url=asked.llm_base_url, embedder=asked.embedder, stated=stated
    )
    if asked.embedder:
        stated |= {"embedder"}
    flags = {
        "index.path": asked.index,
        "index.read_only": asked.read_only,
        "serve.transport": asked.transport,
        "serve.host": asked.host,
        "serve.port": asked.port,
        "serve.roots": [root for root in asked.root or () if root],
        "serve.token_env": asked.token_env,
    }
    # An empty flag is none: a client that fills them in may leave it so.
    chosen |= {key: value for key, value in flags.items() if value not in (None, "", [])}
    cfg = composed([*groups, *overrides], chosen)
    if cfg.serve.transport not in _TRANSPORTS:
        raise ConfigError(f"--transport must be one of {', '.join(_TRANSPORTS)}, got {cfg.serve.transport!r}")
    if cfg.index.path is None:
        raise ConfigError("no index is named; give its directory as --index DIR")
    return cfg, stated


def shown_config(cfg: DictConfig) -> str:
    """The configuration as YAML without secrets: for whoever can speak to the server."""
    return yaml.safe_dump(resolved_config(cfg), allow_unicode=True, sort_keys=False)


def _serve(cfg: DictConfig, stated: frozenset[str]) -> int:
    # Behind the check for mcp, and late: --help need not wait for it.
    from hipporag_torch.service.http import Address, http_app, serve_http
    from hipporag_torch.service.server import build_server

    serve = cfg.serve
    if type(serve.max_reads) is not int or serve.max_reads < 1:
        raise ConfigError(f"serve.max_reads must be at least 1, got {serve.max_reads!r}")
    with build_service(cfg, stated) as service:
        server = build_server(
            service,
            config=lambda: shown_config(cfg),
            max_reads=serve.max_reads,
            version=metadata.version("hipporag-torch"),
        )
        if serve.transport == "http":
            address = Address(
                host=serve.host,
                port=serve.port,
                token_env=serve.token_env,
                allowed_hosts=plain(serve.allowed_hosts),
                allowed_origins=plain(serve.allowed_origins),
            )
            app = http_app(server, address, batch_chars=service.limits.batch_chars)
            end_with(service)
            service.start()
            serve_http(app, address)
        else:
            end_with(service)
            service.start()
            server.run("stdio")
    return 0


def end_with(service: MemoryService) -> None:
    """Let SIGTERM and Ctrl-C end the running write first, and then the process, from wherever it is.

    With stdio a thread reads stdin and cannot be woken; with HTTP the signal comes here once open requests
    have ended.
    """

    def end(number: int, frame: FrameType | None) -> None:
        service.close()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _require_mcp() -> None:
    try:
        metadata.version("mcp")
    except metadata.PackageNotFoundError:
        raise ConfigError(
            "the MCP server needs the package mcp, which is not installed; install it with: "
            "pip install 'hipporag-torch[mcp]'"
        ) from None


def parser() -> argparse.ArgumentParser:
    """The flags that people type; all else is a key=value."""
    flags = argparse.ArgumentParser(
        prog="hipporag-torch-mcp",
        description="Serve a memory of documents to agents over MCP.",
        epilog="Further settings are key=value, as everywhere: extractor=openie llm.model=NAME "
        "serve.confirm_above=20; conf/serve.yaml explains those of the server. Without any it needs no key "
        "and no download: embedder=minilm, extractor=sentences, reader=extractive.",
    )
    add = flags.add_argument
    add(
        "--index",
        "--save-dir",
        metavar="DIR",
        help="the index; made when it is first written to, if there is none",
    )
    add("--llm", metavar="MODEL", help="a chat model that extracts and answers; without it none is asked")
    add(
        "--llm-base-url",
        metavar="URL",
        help="where it is; an OpenAI-compatible endpoint. Default: OpenAI's own",
    )
    add("--embedder", metavar="NAME", help="an option of conf/embedder, or a sentence-transformers model")
    add("--read-only", action="store_true", default=None, help="change nothing, and offer no tool that would")
    add("--transport", metavar="KIND", help="stdio (the default) or http")
    add("--host", help="where to listen with http; beyond 127.0.0.1 a token is needed")
    add("--port", type=int, help="default 8765")
    add("--root", action="append", metavar="FOLDER", help="a folder that index_folder may read; repeatable")
    add("--token-env", metavar="NAME", help="the environment variable with the bearer token of http")
    add("overrides", nargs="*", metavar="key=value", help="further settings")
    return flags


if __name__ == "__main__":
    sys.exit(main())
