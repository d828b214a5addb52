"""The chat models of a run: one for each role, equal ones loaded once, all within one budget."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from hipporag_torch.chat import Usage
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.budget import Budget, BudgetedChatModel
from hipporag_torch.llms.cache import ReplyCaches
from hipporag_torch.llms.cached import CachedChatModel
from hipporag_torch.llms.metered import MeteredChatModel
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.protocols import ChatModel

ModelRole = Literal["extraction", "linking", "filter", "reading"]
"""What a model is asked for. IRCoT's thoughts belong to reading."""

ROLES: tuple[ModelRole, ...] = ("extraction", "linking", "filter", "reading")


class LimitedChatModel(ChatModel, Protocol):
    """A chat model that says how long its replies may be and what they cost, as all of ours do."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def prices(self) -> Prices | None: ...


class ChatModels:
    """Makes a role's model when it is first asked for. Roles with equal settings share one instance.

    Around each: a meter, then the cache, then the budget, so that what a cache gives is free.

    settings: for each role what decides its model, as a text. make: makes the model of a role.
    budget: what all roles may spend together; None: any amount. caches: None keeps no replies.
    """

    def __init__(
        self,
        *,
        settings: Mapping[ModelRole, str],
        make: Callable[[ModelRole], LimitedChatModel],
        budget: Budget | None = None,
        caches: ReplyCaches | None = None,
    ) -> None:
        self._settings, self._make = settings, make
        self._budget, self._caches = budget, caches
        self._models: dict[str, LimitedChatModel] = {}
        self._meters: dict[tuple[ModelRole, bool], MeteredChatModel] = {}

    @property
    def num_loaded(self) -> int:
        """How many models were made so far."""
        return len(self._models)

    def get(self, role: ModelRole, *, derived: bool = False) -> MeteredChatModel:
        """The model of a role, with all that is around it.

        derived: whether its prompts show what was made of passages (facts, thoughts) rather than passages
        alone, whole; see `ReplyCaches`.
        """
        if (role, derived) not in self._meters:
            model = self._model(role)
            wrapped: ChatModel = model
            if self._budget is not None:
                wrapped = BudgetedChatModel(
                    model=model, budget=self._budget, max_tokens=model.max_tokens, prices=model.prices
                )
            if self._caches is not None:
                cache = self._caches.derived if derived else self._caches.quoting
                wrapped = CachedChatModel(model=wrapped, cache=cache)
            self._meters[role, derived] = MeteredChatModel(model=wrapped, max_tokens=model.max_tokens)
        return self._meters[role, derived]

    def prices(self, role: ModelRole) -> Prices | None:
        """What the model of a role costs, if that was stated and the model was made."""
        made = self._models.get(self._settings.get(role, ""))
        return None if made is None else made.prices

    @property
    def usage(self) -> dict[ModelRole, Usage]:
        """What each role was asked so far; without those that were not asked."""
        total: dict[ModelRole, Usage] = {
            role: sum((meter.usage for (its, _), meter in self._meters.items() if its == role), Usage())
            for role in ROLES
        }
        return {role: usage for role, usage in total.items() if usage != Usage()}

    def _model(self, role: ModelRole) -> LimitedChatModel:
        settings = self._settings.get(role)
        if settings is None:
            raise ConfigError(
                f"a language model is needed for {role}, but none is configured; choose one with llm=…"
            )
        if settings not in self._models:
            self._models[settings] = self._make(role)
        return self._models[settings]
