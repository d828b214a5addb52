"""Replies that were paid for once, kept in one SQLite file under a digest of what decides them."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipporag_torch.chat import ChatIdentity, ChatReply, Prompt, Usage
from hipporag_torch.sqlite_cache import KEYS_PER_QUERY, CacheFile

_TABLES = (
    """CREATE TABLE replies (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, finish TEXT NOT NULL, text TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL)""",
    # Each distinct message once: instructions and examples, which all prompts share, take no room.
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, folded TEXT NOT NULL)",
    """CREATE TABLE uses (reply INTEGER NOT NULL, message INTEGER NOT NULL, PRIMARY KEY (reply, message))
        WITHOUT ROWID""",
    "CREATE INDEX uses_by_message ON uses (message)",
)
_WORD = re.compile(r"\w+")


def reply_key(
    identity: ChatIdentity, prompt: Prompt, max_tokens: int | None, schema: Mapping[str, Any] | None
) -> bytes:
    """32 bytes that stand for everything that decides a reply. The order of a schema's keys is part of it."""
    made_by = [identity.endpoint, identity.model, identity.revision, identity.settings, max_tokens, schema]
    messages = [[message.role, message.text] for message in prompt]
    # Escaped JSON, so that half a surrogate pair has a digest too and no two inputs run into each other.
    return hashlib.sha256(json.dumps([made_by, messages]).encode()).digest()


class ReplyCache:
    """Model, settings and prompt → reply. Several processes and threads may share the file.

    The file holds the prompts' messages, their white space and case evened out, for one purpose: `drop`
    can then find every reply to a prompt that quotes a given text, whichever part of the library wrote
    the prompt.

    path: the file, say `<cache dir>/replies.sqlite`; it and its folder are made when first needed.
    wait_seconds: how long to wait while another process writes.

    All methods raise `CompatibilityError` if the file is damaged or is not such a cache, and
    `BackendError` if it cannot be opened or written, or stays locked.
    """

    def __init__(self, path: str | Path, *, wait_seconds: float = 60.0) -> None:
        self._file = CacheFile(
            path,
            noun="reply cache",
            application=b"HRTr",
            schema=1,
            tables=_TABLES,
            wait_seconds=wait_seconds,
        )

    @property
    def path(self) -> Path:
        return self._file.path

    def get(self, keys: Sequence[bytes]) -> dict[bytes, ChatReply]:
        """The replies that are known, their tokens counted as cached."""
        known: dict[bytes, ChatReply] = {}
        with self._file.connection() as connection:
            for start in range(0, len(keys), KEYS_PER_QUERY):
                batch = keys[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(batch))
                columns = "key, text, finish, prompt_tokens, completion_tokens"
                query = f"SELECT {columns} FROM replies WHERE key IN ({marks})"  # noqa: S608
                for key, text, finish, sent, got in connection.execute(query, batch):
                    usage = Usage(cached_calls=1, cached_prompt_tokens=sent, cached_completion_tokens=got)
                    known[key] = ChatReply(text, finish, usage)
        return known

    def put(self, entries: Iterable[tuple[bytes, Prompt, ChatReply]]) -> None:
        """Store replies that were paid for, all or none. The first that is put for a key stays."""
        with self._file.writing() as connection:
            for key, prompt, reply in entries:
                usage = reply.usage
                row = (key, reply.finish, reply.text, usage.prompt_tokens, usage.completion_tokens)
                put = connection.execute(
                    "INSERT OR IGNORE INTO replies (key, finish, text, prompt_tokens, completion_tokens) "
                    "VALUES (?, ?, ?, ?, ?)",
                    row,
                )
                if put.rowcount == 0:
                    continue
                for folded in dict.fromkeys(_folded(message.text) for message in prompt):
                    digest = hashlib.sha256(folded.encode()).digest()
                    connection.execute(
                        "INSERT OR IGNORE INTO messages (digest, folded) VALUES (?, ?)", (digest, folded)
                    )
                    connection.execute(
                        "INSERT INTO uses SELECT ?, id FROM messages WHERE digest = ?",
                        (put.lastrowid, digest),
                    )

    def forget(self, keys: Sequence[bytes]) -> None:
        """Delete some replies, so that they are asked for again."""
        with self._file.writing() as connection:
            connection.executemany("DELETE FROM replies WHERE key = ?", ((key,) for key in keys))
            _delete_unused(connection)

    def drop(self, texts: Sequence[str]) -> int:
        """Delete every reply to a prompt with one of the texts in it; how many there were.

        Their bytes, those of the prompts included, leave the file. A text counts as in a prompt if it stands
        in one of its messages word for word; white space and case are ignored. One that is found in
        unrelated prompts, say a single word, deletes their replies too, which are then paid for again.
        The time grows with the size of the cache.
        """
        if not self.path.exists():
            return 0
        quoted = _Quoted(texts)
        with self._file.writing() as connection:
            rows = connection.execute("SELECT id, folded FROM messages")
            found = [(message,) for message, folded in rows if quoted.in_(folded)]
            (before,) = connection.execute("SELECT count(*) FROM replies").fetchone()
            connection.executemany(
                "DELETE FROM replies WHERE id IN (SELECT reply FROM uses WHERE message = ?)", found
            )
            (after,) = connection.execute("SELECT count(*) FROM replies").fetchone()
            _delete_unused(connection)
        if found:
            with self._file.connection() as connection:
                # Rows that SQLite moved between pages may have left copies; this writes every page anew.
                connection.execute("VACUUM")
        return before - after

    def clear(self) -> int:
        """Delete every reply, so that its bytes leave the file; how many there were."""
        if not self.path.exists():
            return 0
        with self._file.writing() as connection:
            (count,) = connection.execute("SELECT count(*) FROM replies").fetchone()
            connection.execute("DELETE FROM replies")
            _delete_unused(connection)
        if count:
            with self._file.connection() as connection:
                connection.execute("VACUUM")
        return count


@dataclass(frozen=True, eq=False)
class ReplyCaches:
    """Where replies are kept, by how those that show something of a removed passage are found.

    quoting: prompts that show passages as they are: its text finds them. derived: prompts that show what
    was made of passages, such as facts and thoughts, in which no text is sure to be found: all go.
    """

    quoting: ReplyCache
    derived: ReplyCache

    def drop(self, passages: Sequence[str]) -> int:
        """Delete what could show something of these passages' texts; how many replies that were."""
        return (self.quoting.drop(passages) if passages else 0) + self.derived.clear()


class _Quoted:
    """Finds any of some texts in messages, at about one look-up for each word of a message.

    A text is looked for only where its longest inner word is: that one is a whole word of the message too,
    while the first and the last may go on outside of the text. Texts without an inner word are always
    looked for.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        self._others: list[str] = []
        for text in sorted({_folded(text) for text in texts} - {""}):
            inner = _WORD.findall(text)[1:-1]
            if inner:
                self._by_word.setdefault(max(inner, key=len), []).append(text)
            else:
                self._others.append(text)

    def in_(self, folded: str) -> bool:
        if any(text in folded for text in self._others):
            return True
        words = self._by_word.keys() & set(_WORD.findall(folded))
        return any(text in folded for word in words for text in self._by_word[word])


def _folded(text: str) -> str:
    # Half a surrogate pair cannot be stored; no passage holds one.
    return " ".join(text.casefold().split()).encode("utf-8", "replace").decode()


def _delete_unused(connection: Any) -> None:
    connection.execute("DELETE FROM uses WHERE reply NOT IN (SELECT id FROM replies)")
    connection.execute("DELETE FROM messages WHERE id NOT IN (SELECT message FROM uses)")
