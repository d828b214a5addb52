"""Connections to records.sqlite: what is not ours is refused, what was interrupted is told."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hipporag_torch.errors import CompatibilityError, StoreError
from hipporag_torch.store.database import (
    RECORDS,
    SCHEMA,
    is_made,
    make_database,
    opened,
    snapshot,
    transaction,
)


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO properties VALUES ('text', '{}')")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    make_database(tmp_path, fill)
    return tmp_path


def plainly(directory: Path, *statements: str) -> None:
    """Change the file behind the library's back."""
    with closing(sqlite3.connect(directory / RECORDS, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_what_was_made_is_read_with_and_without_writing(made: Path) -> None:
    for write in (True, False):
        assert is_made(made, write=write)
        with opened(made, write=write) as connection:
            assert connection.execute("SELECT * FROM properties").fetchall() == [("text", "{}")]


def test_making_is_all_or_nothing(tmp_path: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        fill(connection)
        raise KeyError

    with pytest.raises(KeyError):
        make_database(tmp_path, fail)
    assert not is_made(tmp_path, write=True)
    make_database(tmp_path, fill)
    assert is_made(tmp_path, write=True)


@pytest.mark.parametrize("content", [None, b""])
def test_no_file_and_an_empty_file_are_no_index(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / RECORDS).write_bytes(content)
    assert not is_made(tmp_path, write=False)


def test_another_programs_database(tmp_path: Path) -> None:
    plainly(tmp_path, "CREATE TABLE t (x)", "PRAGMA application_id = 77")
    before = (tmp_path / RECORDS).read_bytes()
    with (
        pytest.raises(StoreError, match=r"not the records of an index: its application id is 77, expected"),
        opened(tmp_path, write=True),
    ):
        pass
    assert (tmp_path / RECORDS).read_bytes() == before


@pytest.mark.parametrize(
    ("schema", "way_out"),
    [(SCHEMA + 1, "install a newer hipporag_torch"), (SCHEMA - 1, "build the index again")],
)
def test_another_schema(made: Path, schema: int, way_out: str) -> None:
    plainly(made, f"PRAGMA user_version = {schema}")
    message = rf"has schema {schema}, this version .* reads schema {SCHEMA}; {way_out}"
    with pytest.raises(CompatibilityError, match=message), opened(made, write=False):
        pass


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / RECORDS).write_bytes(b"# notes\n" * 400)
    for write in (True, False):
        with pytest.raises(StoreError, match=r"cannot be read: file is not a database.*restore"):
            is_made(tmp_path, write=write)


def test_a_malformed_file(made: Path) -> None:
    with (made / RECORDS).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    with (
        pytest.raises(StoreError, match=r"malformed.*restore it from a backup"),
        opened(made, write=False) as connection,
    ):
        connection.execute("SELECT * FROM properties").fetchall()


def test_a_hot_journal_is_rolled_back_by_a_writer_and_told_by_a_reader(made: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(sqlite3.connect(made / RECORDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        for number in range(2000):
            connection.execute("INSERT INTO properties VALUES (?, ?)", (str(number), "x" * 300))
        for name in (RECORDS, RECORDS + "-journal"):
            shutil.copy(made / name, crashed / name)
        connection.execute("ROLLBACK")
    before = {path.name: path.read_bytes() for path in crashed.iterdir()}
    with pytest.raises(StoreError, match=r"in the middle of a commit.*open the index once for writing"):
        is_made(crashed, write=False)
    assert {path.name: path.read_bytes() for path in crashed.iterdir()} == before
    assert is_made(crashed, write=True)
    with opened(crashed, write=False) as connection:
        assert connection.execute("SELECT name FROM properties").fetchall() == [("text",)]


def test_reading_alone_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be read"), opened(tmp_path, write=False):
        pass
    with pytest.raises(StoreError, match="could not be written"), opened(tmp_path, write=True):
        pass
    assert list(tmp_path.iterdir()) == []


def test_reading_alone_writes_nothing(made: Path) -> None:
    with opened(made, write=False) as connection:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM properties")
        assert connection.execute("SELECT count(*) FROM properties").fetchone() == (1,)


def test_a_transaction_that_raises_leaves_nothing(made: Path) -> None:
    with opened(made, write=True) as connection:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.executemany("INSERT INTO properties VALUES (?, '')", [("new",), ("text",)])
        with snapshot(connection):
            assert connection.execute("SELECT count(*) FROM properties").fetchone() == (1,)
        assert not connection.in_transaction


def test_what_is_deleted_is_overwritten(made: Path) -> None:
    with opened(made, write=True) as connection, transaction(connection):
        connection.execute("INSERT INTO properties VALUES ('secret', 'a removed sentence')")
    with opened(made, write=True) as connection, transaction(connection):
        connection.execute("DELETE FROM properties WHERE name = 'secret'")
    assert b"a removed sentence" not in (made / RECORDS).read_bytes()


def test_a_path_with_characters_that_mean_something_to_uris(tmp_path: Path) -> None:
    odd = tmp_path / "50% of? #1 & ü=ö"
    odd.mkdir()
    make_database(odd, fill)
    assert is_made(odd, write=False)
    assert sorted(path.name for path in odd.iterdir()) == [RECORDS]


def test_damaged_text_stops_a_reader_and_is_shown_to_a_tolerant_one(made: Path) -> None:
    plainly(made, "UPDATE properties SET value = CAST(x'61ff' AS TEXT)")
    with pytest.raises(StoreError, match="UTF-8"), opened(made, write=False) as connection:
        connection.execute("SELECT value FROM properties").fetchall()
    with opened(made, write=False, tolerant=True) as connection:
        assert connection.execute("SELECT value FROM properties").fetchall() == [("a\udcff",)]
