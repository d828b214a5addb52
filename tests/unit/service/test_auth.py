"""Who may speak to a server over HTTP."""

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.service.auth import bearer_token, is_loopback
from hipporag_torch.service.http import Address

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.7", False),
        ("memory.example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_what_only_this_machine_reaches(host: str, loopback: bool):
    assert is_loopback(host) == loopback


def test_loopback_needs_no_token_and_any_other_address_does():
    assert bearer_token("127.0.0.1", None) is None
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0 can be reached.*--token-env"):
        bearer_token("0.0.0.0", None)


def test_a_token_is_taken_from_the_environment_and_asked_for_on_loopback_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("THE_TOKEN", f" {TOKEN}\n")
    assert bearer_token("192.0.2.1", "THE_TOKEN") == TOKEN
    assert bearer_token("127.0.0.1", "THE_TOKEN") == TOKEN


@pytest.mark.parametrize(
    "token", ["", "  ", "short", "with spaces in between it", "tökens-of-sixteen-letters"]
)
def test_a_token_that_is_missing_or_weak_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, token: str
):
    monkeypatch.setenv("THE_TOKEN", token)
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(ConfigError, match="THE_TOKEN") as caught:
            bearer_token(host, "THE_TOKEN")
        assert not token.strip() or token not in str(caught.value)


def test_the_hosts_and_origins_that_are_taken_are_its_own_and_those_stated():
    security = Address(
        host="192.0.2.1", allowed_hosts=["memory.example.org"], allowed_origins=["https://tools.example.org"]
    ).security
    assert security.enable_dns_rebinding_protection
    assert {"192.0.2.1:*", "localhost:*", "memory.example.org"} <= set(security.allowed_hosts)
    assert "https://tools.example.org" in security.allowed_origins
    assert not any("*" in host.removesuffix(":*") for host in security.allowed_hosts)
    assert "[2001:db8::1]:*" in Address(host="2001:db8::1").security.allowed_hosts
    assert not any("0.0.0.0" in host for host in Address(host="0.0.0.0").security.allowed_hosts)


@pytest.mark.parametrize(
    ("port", "host"), [(0, "127.0.0.1"), (65536, "127.0.0.1"), (True, "127.0.0.1"), (80, " ")]
)
def test_an_address_that_is_none_is_refused(port: int, host: str):
    with pytest.raises(ConfigError, match=r"--port|--host"):
        Address(port=port, host=host)
