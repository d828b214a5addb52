"""Whether a W&B run goes to its server at once, or into a folder for later."""

import netrc
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from hipporag_torch.errors import ConfigError

Mode = Literal["auto", "online", "offline"]
MODES: tuple[Mode, ...] = ("auto", "online", "offline")

# W&B's own server has gone by several names; a key for one of them serves.
_OWN_SERVER = "api.wandb.ai"
_OWN_ALIASES = frozenset({"api.forge.coreweave.com", "forge.coreweave.com", _OWN_SERVER})


def has_key(base_url: str, environ: Mapping[str, str]) -> bool:
    """Whether there is an API key for the server: in the environment, or in the user's netrc file."""
    if environ.get("WANDB_API_KEY") or environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    host = urlsplit(base_url).netloc
    hosts = {host, _OWN_SERVER} if host in _OWN_ALIASES else {host}
    try:
        entries = netrc.netrc(_netrc_path(environ)).hosts
    except (OSError, netrc.NetrcParseError):
        return False
    return any(host in entries and entries[host][2] for host in hosts)


def chosen_mode(mode: Mode, *, stated: str, key: bool) -> tuple[Literal["online", "offline"], str]:
    """The mode that `mode` comes to, and why.

    stated: what W&B's own settings say, as by WANDB_MODE; `auto` keeps to it. key: whether there is a key.
    Raises `ConfigError` for online without a key: W&B would ask for one.
    """
    if mode == "offline":
        return "offline", "as tracker.mode says"
    if mode == "auto" and stated not in ("online", "run"):
        return "offline", f"as W&B's own settings say (WANDB_MODE: {stated})"
    if key:
        return "online", "as tracker.mode says" if mode == "online" else "since there is an API key"
    if mode == "online":
        raise ConfigError(
            "tracker.mode=online needs an API key of W&B, and there is none in WANDB_API_KEY or the netrc "
            "file; run wandb login, or choose tracker.mode=offline"
        )
    return "offline", "since no API key was found in WANDB_API_KEY or the netrc file"


def _netrc_path(environ: Mapping[str, str]) -> Path:
    if stated := environ.get("NETRC"):
        return Path(stated).expanduser()
    usual = Path("~/.netrc").expanduser()
    return usual if usual.exists() else Path("~/_netrc").expanduser()
