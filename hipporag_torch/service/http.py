"""The MCP server over streamable HTTP."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from hipporag_torch.errors import ConfigError
from hipporag_torch.service.auth import BearerAuth, bearer_token

PATH = "/mcp"
# A call may hand in its longest text in whatever encoding, and JSON may escape every character of it.
_BYTES_PER_CHAR = 6
_OVERHEAD = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_GRACE_SECONDS = 5


@dataclass(frozen=True)
class Address:
    """Where the server listens, and as whom clients may know it.

    token_env: the environment variable with the bearer token; needed beyond loopback.
    allowed_hosts: further Host headers, `name` or `name:port`, such as a proxy's. allowed_origins: further
    Origin headers of browsers, such as https://tools.example.org.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token_env: str | None = None
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()

    def __post_init__(self) -> None:
        if type(self.port) is not int or not 0 < self.port < 65536:
            raise ConfigError(f"--port must lie between 1 and 65535, got {self.port!r}")
        if not isinstance(self.host, str) or not self.host.strip():
            raise ConfigError(f"--host must be an address or a name, got {self.host!r}")

    @property
    def security(self) -> TransportSecuritySettings:
        """Which Host and Origin headers are taken: a page of another site must not reach the server."""
        own = [_bracketed(self.host)]
        if self.host in ("0.0.0.0", "::"):  # noqa: S104  what it means is asked here
            own = [socket.gethostname()]
        names = dict.fromkeys([*_LOOPBACK, *own])
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[*(f"{name}:*" for name in names), *names, *self.allowed_hosts],
            allowed_origins=[
                *(
                    f"{scheme}://{name}{port}"
                    for name in names
                    for scheme in ("http", "https")
                    for port in (":*", "")
                ),
                *self.allowed_origins,
            ],
        )


def http_app(server: MCPServer, address: Address, *, batch_chars: int) -> ASGIApp:
    """The application: 401 without the token, 403 for a foreign Origin, 421 for a foreign Host, then MCP.

    batch_chars: characters that a call may hand in, which bounds a request's body.
    Raises `ConfigError` if the address is public and there is no token.
    """
    token = bearer_token(address.host, address.token_env)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=address.host,
        transport_security=address.security,
        max_request_body_size=batch_chars * _BYTES_PER_CHAR + _OVERHEAD,
    )
    return app if token is None else BearerAuth(app, token=token)


def serve_http(app: ASGIApp, address: Address) -> None:
    """Listen until SIGINT or SIGTERM. Raises `ConfigError` if the address cannot be had."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address.host}, port {address.port}: {error.strerror}; name another "
            "--port or --host"
        ) from error
    with listening:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listening])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
