"""Who may speak to the server over HTTP: a bearer token, and where it has to be asked for."""

import hashlib
import hmac
import ipaddress
import os

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hipporag_torch.errors import ConfigError

_SHORTEST = 16
_MAKE_ONE = "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server on `host`. A name other than localhost counts as public."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bearer_token(host: str, token_env: str | None) -> str | None:
    """The token that clients of a server on `host` have to show, read from the variable `token_env`.

    None on a loopback address without `token_env`. Raises `ConfigError` where one is needed and there is
    none, or a weak one: a server that everyone may write to must not start.
    """
    if token_env is None:
        if is_loopback(host):
            return None
        raise ConfigError(
            f"a server on {host} can be reached from other machines, so it needs a bearer token: put one "
            f"into an environment variable, name that with --token-env, or serve on 127.0.0.1; {_MAKE_ONE}"
        )
    token = os.environ.get(token_env, "").strip()
    if not token:
        raise ConfigError(f"the environment variable {token_env} of --token-env is not set; {_MAKE_ONE}")
    if len(token) < _SHORTEST or not token.isascii() or any(c.isspace() for c in token):
        raise ConfigError(
            f"the token in {token_env} has to be {_SHORTEST} or more ASCII characters without spaces; "
            f"{_MAKE_ONE}"
        )
    return token


class BearerAuth:
    """Wraps an ASGI application and answers 401 to requests without the token. Only its digest is kept."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app = app
        self._digest = _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_shown(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        refusal = JSONResponse(
            {
                "error": "invalid_token",
                "error_description": "send the server's token: Authorization: Bearer …",
            },
            status_code=401,
            headers={"WWW-Authenticate": 'Bearer realm="hipporag-torch"'},
        )
        await refusal(scope, receive, send)

    def _is_shown(self, headers: Headers) -> bool:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        # Digests of equal length, compared in constant time: how long it takes tells nothing of the token.
        matches = hmac.compare_digest(_digest(shown.strip()), self._digest)
        return matches and scheme.lower() == "bearer"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
