from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.tracking.wandb_mode import chosen_mode, has_key

OWN = "https://api.forge.coreweave.com"


@pytest.fixture
def netrc(tmp_path: Path) -> dict[str, str]:
    """An environment whose netrc file has keys for W&B's own server and for another."""
    path = tmp_path / "netrc"
    path.write_text(
        "machine api.wandb.ai login user password k\nmachine wandb.lab:8080 login user password k\n"
    )
    path.chmod(0o600)
    return {"NETRC": str(path)}


@pytest.mark.parametrize(
    ("url", "there"),
    [
        (OWN, True),
        ("https://api.wandb.ai", True),
        ("http://wandb.lab:8080", True),
        ("http://wandb.lab", False),
        ("https://elsewhere.example", False),
    ],
)
def test_a_netrc_file_has_keys_by_server(netrc: dict[str, str], url: str, there: bool) -> None:
    assert has_key(url, netrc) == there


def test_the_environment_has_a_key_for_any_server(tmp_path: Path) -> None:
    empty = {"NETRC": str(tmp_path / "none")}
    assert not has_key(OWN, empty)
    assert has_key(OWN, {**empty, "WANDB_API_KEY": "k"})
    assert not has_key(OWN, {**empty, "WANDB_API_KEY": ""})


def test_a_damaged_netrc_file_has_no_key(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machin api.wandb.ai\n")
    assert not has_key(OWN, {"NETRC": str(tmp_path / "netrc")})


@pytest.mark.parametrize(
    ("options", "expected", "why"),
    [
        ({"mode": "auto", "stated": "online", "key": True}, "online", "since there is an API key"),
        ({"mode": "auto", "stated": "online", "key": False}, "offline", "no API key was found"),
        ({"mode": "auto", "stated": "offline", "key": True}, "offline", "WANDB_MODE: offline"),
        ({"mode": "auto", "stated": "disabled", "key": True}, "offline", "WANDB_MODE: disabled"),
        ({"mode": "offline", "stated": "online", "key": True}, "offline", "tracker.mode"),
        ({"mode": "online", "stated": "offline", "key": True}, "online", "tracker.mode"),
    ],
)
def test_the_mode_and_why(options: dict[str, Any], expected: str, why: str) -> None:
    mode, reason = chosen_mode(options["mode"], stated=options["stated"], key=options["key"])
    assert mode == expected
    assert why in reason


def test_online_needs_a_key() -> None:
    with pytest.raises(ConfigError, match=r"none in WANDB_API_KEY or the netrc file; run wandb login"):
        chosen_mode("online", stated="online", key=False)
