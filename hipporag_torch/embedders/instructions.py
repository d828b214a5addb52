"""The instructions of an embedder: what it puts before a text, by the text's role."""

from collections.abc import Mapping
from typing import get_args

from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Role

_ROLES: tuple[Role, ...] = get_args(Role)


class Instructions:
    """Role → text. A role that is not named has the empty instruction, which is the same as none."""

    def __init__(self, by_role: Mapping[Role, str] | None) -> None:
        """Raises `ConfigError` for a role that does not exist, or for an instruction that is not text."""
        for role, text in (by_role or {}).items():
            _known(role)
            if not isinstance(text, str):
                raise ConfigError(
                    f"embedder.instructions.{role} must be a string, got {type(text).__name__}: "
                    f"{text!r:.80}; leave the role out to have no instruction"
                )
        self._by_role: dict[Role, str] = {role: text for role, text in (by_role or {}).items() if text}

    def of(self, role: Role) -> str:
        """The instruction of a role. Raises `ConfigError` for a role that does not exist."""
        return self._by_role.get(_known(role), "")

    def as_tuple(self) -> tuple[tuple[Role, str], ...]:
        """All that are not empty, sorted by role: the form that an identity holds."""
        return tuple(sorted(self._by_role.items()))


def _known(role: Role) -> Role:
    if role not in _ROLES:
        raise ConfigError(f"{role!r} is not a role that a text can have; the roles are {', '.join(_ROLES)}")
    return role
