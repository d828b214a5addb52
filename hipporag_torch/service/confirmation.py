"""Confirmation: what would cost much is done only with the token that a dry run of the same thing gave."""

import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hipporag_torch.errors import ConfigError, InputError

# Tokens that are remembered, used and expired ones included; the oldest go first.
_MOST_TOKENS = 4096
_AGAIN = "call it with dry_run=true again, and pass on the confirm that it gives"


@dataclass(frozen=True)
class Plan:
    """What a token is good for: an action with its arguments, on one generation of the index."""

    arguments: str
    generation: int

    @staticmethod
    def of(arguments: Any, generation: int) -> "Plan":
        """arguments: the action and all that decides what it does, JSON-like."""
        text = json.dumps(arguments, ensure_ascii=True, sort_keys=True)
        return Plan(hashlib.sha256(text.encode()).hexdigest(), generation)


@dataclass
class _Token:
    plan: Plan
    expires: float
    used: bool = False


class Confirmations:
    """Hands out tokens and takes each back once, for its plan, before it expires.

    above: extractions that a call may make without a token; 0: none, so every call that would make any needs
        one; None: no call does. seconds: how long a token is good, more than 0.
    """

    def __init__(
        self, *, above: int | None = 50, seconds: float = 900.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if above is not None and (type(above) is not int or above < 0):
            raise ConfigError(
                f"serve.confirm_above must be 0 (always) or more, or null for never, got {above!r}"
            )
        if type(seconds) not in (int, float) or not seconds > 0:
            raise ConfigError(f"serve.confirm_seconds must be more than 0, got {seconds!r}")
        self.above, self.seconds = above, seconds
        self._clock = clock
        self._tokens: OrderedDict[bytes, _Token] = OrderedDict()
        self._lock = threading.Lock()

    def needed(self, extractions: int) -> bool:
        """Whether a call that would extract so many passages needs a token."""
        return self.above is not None and extractions > self.above

    def hand_out(self, plan: Plan) -> str:
        """A new token for `plan`."""
        token = secrets.token_urlsafe(12)
        with self._lock:
            self._tokens[_key(token)] = _Token(plan, self._clock() + self.seconds)
            while len(self._tokens) > _MOST_TOKENS:
                self._tokens.popitem(last=False)
        return token

    def redeem(self, token: str, plan: Plan) -> None:
        """Use `token` up for `plan`. Raises `InputError`, and keeps it, if it is not good for that."""
        with self._lock:
            held = self._tokens.get(_key(token))
            if held is None:
                raise InputError(f"confirm is not a token that this server has given; {_AGAIN}")
            if held.used:
                raise InputError(f"confirm was used already, and a token is good once; {_AGAIN}")
            if self._clock() >= held.expires:
                raise InputError(
                    f"confirm has expired, a token is good for {self.seconds:g} seconds; {_AGAIN}"
                )
            if held.plan.arguments != plan.arguments:
                raise InputError(f"confirm was given for another plan than these arguments; {_AGAIN}")
            if held.plan.generation != plan.generation:
                raise InputError(
                    "the index has changed since the dry run that gave this confirm, so what it would do "
                    f"may have changed too; {_AGAIN}"
                )
            held.used = True

    def require(self, token: str | None, plan: Plan, *, extractions: int, cost: str, action: str) -> None:
        """Redeem a token if one is stated; raise `InputError` if none is and so many extractions need one."""
        if token is not None:
            self.redeem(token, plan)
        elif self.needed(extractions):
            raise InputError(
                f"this would extract {extractions:,} passages ({cost}), more than {self.above:,} need a "
                f"confirmation; call {action} with dry_run=true and the same arguments, show what it says "
                "to whoever pays for it, and then pass on the confirm that it gives"
            )


def _key(token: str) -> bytes:
    """Tokens are kept as digests, so that looking one up takes no longer the more of it is right."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
