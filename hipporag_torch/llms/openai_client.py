"""Where an OpenAI-compatible endpoint is, and how its client is made. Keys are read when used, never kept."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hipporag_torch.errors import ConfigError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_OPENAI_URL = "https://api.openai.com/v1"
# The SDK wants a key; servers that check none take any.
_NO_KEY = "none"
_CONNECT_SECONDS = 10.0
# Shorter values are names and versions, not secrets, and would be blotted out of any text.
_SECRET_LENGTH = 8


@dataclass(frozen=True, repr=False)
class Endpoint:
    """The service that answers: its address, where its key is, and what is sent with each request.

    base_url: None is OpenAI's own. With an `api_version` it is an Azure resource.
    api_key_env: the environment variable with the key; None for a service that wants none. At a loopback
        address the variable need not be set. headers: sent with each request; they never appear in messages.
    group: whose options these are, for messages.
    """

    base_url: str | None = None
    api_key_env: str | None = "OPENAI_API_KEY"
    api_version: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    group: str = "llm"

    def __post_init__(self) -> None:
        group = self.group
        if self.base_url is not None:
            _require_address(self.base_url, group)
        if self.api_version is not None and (self.base_url is None or self.api_key_env is None):
            raise ConfigError(
                f"{group}.api_version makes it an Azure endpoint, which needs {group}.base_url, such as "
                f"https://NAME.openai.azure.com, and {group}.api_key_env, such as AZURE_OPENAI_API_KEY"
            )
        for name, value in self.headers.items():
            if not (_is_header(name) and _is_header(value)):
                raise ConfigError(
                    f"{group}.headers: {name!r} must be text in printable ASCII, and its value too"
                )

    def __repr__(self) -> str:
        return f"Endpoint({self.url})"

    @property
    def url(self) -> str:
        return (self.base_url or _OPENAI_URL).rstrip("/")

    def key(self) -> str:
        """The key as the environment has it now. Raises `ConfigError` if there is none but one is needed."""
        if self.api_key_env is None:
            return _NO_KEY
        key = os.environ.get(self.api_key_env, "").strip()
        if not key and _is_loopback(self.url):
            return _NO_KEY
        if not key:
            raise ConfigError(
                f"no key for {self.url}: the environment variable {self.api_key_env} is not set; set it, "
                f"name another as {self.group}.api_key_env, or set that to null for an endpoint that wants "
                "none"
            )
        if not _is_header(key):
            raise ConfigError(
                f"the environment variable {self.api_key_env} does not hold a key: it has line ends or "
                "characters outside ASCII inside; set it to the key alone"
            )
        return key

    def secrets(self, key: str) -> list[str]:
        """What must appear in no message."""
        return [value for value in (key, *self.headers.values()) if len(value) >= _SECRET_LENGTH]

    def client(self, key: str, *, deployment: str, timeout_seconds: float, max_retries: int) -> "AsyncOpenAI":
        """A client for one event loop. Its address and key are stated, so no other variable decides them."""
        openai = imported_openai()
        common: dict[str, Any] = {
            "api_key": key,
            "timeout": openai.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS)),
            "max_retries": max_retries,
            "default_headers": dict(self.headers),
        }
        if self.api_version is None:
            return openai.AsyncOpenAI(base_url=self.url, **common)
        return openai.AsyncAzureOpenAI(
            azure_endpoint=self.url, azure_deployment=deployment, api_version=self.api_version, **common
        )


def imported_openai() -> Any:
    """The official SDK, which takes seconds to import: only where a call is about to be made."""
    try:
        import openai
    except ImportError as error:
        raise ConfigError(
            "an OpenAI-compatible endpoint needs the extra: pip install 'hipporag-torch[openai]'"
        ) from error
    return openai


def _require_address(base_url: str, group: str) -> None:
    parts = urlsplit(base_url)
    plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme in ("http", "https") and parts.hostname and plain:
        return
    # What is wrong may be a secret: it is not shown.
    raise ConfigError(
        f"{group}.base_url must be an address such as http://localhost:8000/v1, without a user, password or "
        f"query; a key belongs in the environment variable that {group}.api_key_env names"
    )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_header(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable()
