"""hipporag-torch as a person and a machine run it: in a process of its own, with a terminal and without."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Done, environment

HASHING = ["embedder=hashing", "extractor=none", "runtime.cache=false", "runtime.device=cpu"]
COMMAND = [sys.executable, "-m", "hipporag_torch.cli"]

pytestmark = pytest.mark.slow


def run(*arguments: str | Path, **env: str) -> Done:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def write_notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        text = f"# Station {number}\n\nStation {number} lies {number} miles north of Bergen.\n"
        (folder / f"{number:03}.md").write_text(text, encoding="utf-8")
    return folder


def at_a_terminal(answer: str, *arguments: str | Path) -> Done:
    """Run a command whose standard input and error are a terminal, at which someone types `answer`."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=environment(TERM="dumb"),
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        assert process.stdout
        out, shown = process.stdout.read(), b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # Linux's way to say that the other end of a terminal is closed
        status = process.wait(timeout=300)
    os.close(ours)
    return Done(status, out, shown.decode())


def test_the_embedded_default_answers_without_a_key(tmp_path: Path) -> None:
    notes, env = (
        tmp_path / "notes",
        {"XDG_CACHE_HOME": str(tmp_path), "HIPPORAG_INDEX": str(tmp_path / "index")},
    )
    notes.mkdir()
    (notes / "ada.md").write_text("# Ada Vale\n\nAda Vale founded Northwind Press in Bergen.\n", "utf-8")
    (notes / "bergen.md").write_text("# Bergen\n\nBergen lies on the west coast of Norway.\n", "utf-8")
    synced = run("index-folder", notes, "--json", **env)
    assert (synced.status, synced.err) == (0, "")
    assert json.loads(synced.out)["counts"] == {"added": 2}
    asked = run("ask", "In which country was Northwind Press founded?", "--json", **env)
    assert (asked.status, asked.err) == (0, "")
    told = json.loads(asked.out)
    assert told["method"].endswith("no language model was used")
    assert (told["route"], told["usage"]["calls"], len(told["passages"])) == ("graph", 0, 2)
    assert "Norway" in told["answer"]


def test_a_person_is_asked_before_much_is_extracted(tmp_path: Path) -> None:
    notes, index = write_notes(tmp_path / "notes", 3), tmp_path / "index"
    arguments = ("index-folder", notes, "--index", index, *HASHING, "serve.confirm_above=2")
    refused = at_a_terminal("n", *arguments)
    assert refused.status == 1
    assert "3 passages would be extracted" in refused.err
    assert "nothing was changed" in refused.err
    assert "000.md" not in refused.out
    assert not index.exists()
    agreed = at_a_terminal("y", *arguments)
    assert agreed.status == 0
    assert "added      000.md" in agreed.out


def test_interrupted_it_keeps_what_is_done_and_goes_on(tmp_path: Path) -> None:
    notes, index = write_notes(tmp_path / "notes", 200), tmp_path / "index"
    arguments = ["index-folder", str(notes), "--index", str(index), "--yes", "--json", *HASHING]
    with subprocess.Popen(
        [*COMMAND, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while generation_of(index) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    (line,) = err.splitlines()
    assert line.startswith("interrupted; ")
    assert "the same command again goes on with the rest" in line
    done = int(line.split()[1])
    assert 2 <= done < 200
    again = run(*arguments)
    assert again.status == 0
    counts = json.loads(again.out)["counts"]
    # Between a file's commit and the next file it may have been counted or not.
    assert counts["unchanged"] in (done, done + 1)
    assert counts == {"added": 200 - counts["unchanged"], "unchanged": counts["unchanged"]}


def generation_of(index: Path) -> int:
    """The last state that was committed, -1 before there is one."""
    try:
        connection = sqlite3.connect(f"file:{index / 'records.sqlite'}?mode=ro", uri=True)
        try:
            (number,) = connection.execute("SELECT max(number) FROM generations").fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return -1
    return number


def test_output_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    notes, index = write_notes(tmp_path / "notes", 3), tmp_path / "index"
    assert run("index-folder", notes, "--index", index, *HASHING).status == 0
    for json_ in ([], ["--json"]):
        with subprocess.Popen(
            [*COMMAND, "sources", "--index", str(index), *json_],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 1


def test_the_installed_command_is_the_same() -> None:
    installed = str(Path(sys.executable).with_name("hipporag-torch"))
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, run("--version").out)
