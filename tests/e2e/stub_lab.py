"""A model at the stub server, and memories on the disk that extract with it through the real SDK."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.budget import Budget, BudgetedChatModel
from hipporag_torch.llms.cache import ReplyCache
from hipporag_torch.llms.cached import CachedChatModel
from hipporag_torch.llms.openai import OpenAIChatModel
from hipporag_torch.protocols import ChatModel

from ..llm_stub import Request, Response, StubServer, completion

MAX_TOKENS = 50


class Model:
    """What answers at the stub: what was `said` for a passage, else its words as a triple.

    Passages have three words, unless something is said for them. `faults` are given instead, one after the
    other, for (passage, entities or triples). `asked` counts the requests for each.
    """

    def __init__(self) -> None:
        self.said: dict[str, list[list[str]]] = {}
        self.faults: dict[tuple[str, str], list[Response]] = defaultdict(list)
        self.asked = Counter[tuple[str, str]]()

    def __call__(self, request: Request) -> Response:
        passage, _, entities = request.last.removeprefix("Passage:\n\n").partition("\n\nNamed entities:\n\n")
        wanted = passage, "triples" if entities else "entities"
        self.asked[wanted] += 1
        if faults := self.faults[wanted]:
            return faults.pop(0)
        first, *others = passage.rstrip(".").split(maxsplit=2)
        if not entities:
            return Response(completion(json.dumps({"entities": [first]})))
        triples = self.said.get(passage) or [[first, *others]]
        return Response(completion(json.dumps({"triples": triples}, ensure_ascii=False)))

    def calls(self) -> int:
        """Requests since the last time."""
        total = self.asked.total()
        self.asked.clear()
        return total


class Lab:
    """A stub, and memories in one directory that ask it."""

    def __init__(self, folder: Path, stub: StubServer, answers: Model) -> None:
        self.index, self.stub, self.answers = folder / "index", stub, answers
        self._cache = ReplyCache(folder / "replies.sqlite")
        self.model = OpenAIChatModel(model="m", base_url=stub.url)

    def open(self, **options: Any) -> HippoRAG:
        """The memory, with an extractor as below."""
        return HippoRAG.open(
            self.index, embedder=HashingEmbedder(dim=64), extractor=self.extractor(**options)
        )

    def extractor(
        self, *, budget: Budget | None = None, cached: bool = True, block_size: int = 256, **options: Any
    ) -> OpenIEExtractor:
        """options: those of `OpenAIChatModel`."""
        given: dict[str, Any] = {"max_tokens": MAX_TOKENS, "max_retries": 0, "give_up_after": 3}
        given |= {"concurrency": 4} | options
        self.model = OpenAIChatModel(model="m", base_url=self.stub.url, **given)
        llm: ChatModel = self.model
        if budget is not None:
            llm = BudgetedChatModel(model=llm, budget=budget, max_tokens=MAX_TOKENS)
        if cached:
            llm = CachedChatModel(model=llm, cache=self._cache)
        return OpenIEExtractor(llm=llm, max_tokens=MAX_TOKENS, block_size=block_size)
