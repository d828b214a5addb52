"""An OpenAI-compatible server for tests, of the standard library: answers as a test wants, and remembers."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent: `number` counts from 0, `at` is when it came."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    @property
    def last(self) -> str:
        """The last message's text."""
        return self.body["messages"][-1]["content"]


@dataclass(frozen=True)
class Response:
    """What the server does: waits `delay` seconds, then answers, or closes the connection `midway`."""

    body: Any = ""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    midway: bool = False

    def encoded(self) -> bytes:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


Behave = Callable[[Request], Response]


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion that counts one token per word of the reply, and 7 for the prompt."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **message},
    }
    usage = {"prompt_tokens": 7, "completion_tokens": len((text or "").split()), "total_tokens": 0}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def failure(status: int, message: str, **fields: Any) -> Response:
    """An error as OpenAI writes it."""
    return Response(
        {"error": {"message": message, "type": None, "param": None, "code": None, **fields}}, status
    )


def events(*chunks: dict[str, Any] | str) -> Response:
    """Server-sent events, with the end mark."""
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return Response("".join(f"data: {line}\n\n" for line in lines), content_type="text/event-stream")


def chunk(text: str | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a streamed reply."""
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [choice],
        **fields,
    }


def echo(request: Request) -> Response:
    """Answers with the last message."""
    return Response(completion(request.last))


class StubServer:
    """Serves until its block ends. `behave` and `remember` may be changed at any time."""

    def __init__(self, behave: Behave = echo) -> None:
        self.behave = behave
        self.remember = True
        self.requests: list[Request] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()

    def __enter__(self) -> "StubServer":
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def respond(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Response:
        with self._lock:
            request = Request(len(self.requests), path, headers, body, time.monotonic())
            if self.remember:
                self.requests.append(request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            response = self.behave(request)
            time.sleep(response.delay)
        finally:
            with self._lock:
                self._in_flight -= 1
        return response


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


def _handler_of(stub: StubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = stub.respond(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            content = response.encoded()
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if response.midway:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            else:
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests look at `requests`."""

    return Handler
