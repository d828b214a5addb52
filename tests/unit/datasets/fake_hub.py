"""A hub of one data set repository on this machine, over real HTTP: what is asked of it is on record."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from .hub_rows import REPO


@dataclass
class FakeHub:
    """`head` is the commit of main; `commits` has each commit's files by name.

    A `portal` answers everything with a page, as the login page of a network does.
    """

    head: str
    commits: Mapping[str, Mapping[str, bytes]]
    url: str = ""
    portal: bool = False
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if self.portal:
            return 200, {"Content-Type": "text/html"}, b"<html>Log in</html>"
        api = f"/api/datasets/{REPO}"
        if path == api or path == f"{api}/revision/main":
            return self._info(self.head)
        if path.startswith(f"{api}/revision/"):
            commit = path.rpartition("/")[2]
            return self._info(commit) if commit in self.commits else _missing("RevisionNotFound")
        prefix = f"/datasets/{REPO}/resolve/"
        if not path.startswith(prefix):
            return _missing("RepoNotFound")
        revision, _, name = path.removeprefix(prefix).partition("/")
        commit = self.head if revision == "main" else revision
        files = self.commits.get(commit)
        if files is None:
            return _missing("RevisionNotFound")
        if name not in files:
            return _missing("EntryNotFound", {"X-Repo-Commit": commit})
        etag = hashlib.sha1(files[name]).hexdigest()
        return 200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}, files[name]

    def _info(self, commit: str) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps({"id": REPO, "sha": commit, "siblings": []}).encode()


def _missing(code: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    return 404, {"X-Error-Code": code, **(headers or {})}, b""


@contextmanager
def serve(hub: FakeHub) -> Iterator[FakeHub]:
    """`hub` at its `url` while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
