"""The notebooks as they are committed: without outputs, and the same on every machine."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# At the root, a home or a drive; a slash within a relative path, an address, a fraction or a tag is none.
ABSOLUTE = re.compile(r"(?<![\w.)}\]/:~<-])(?:/|~/|[A-Za-z]:[\\/])[\w.-][\w./\\-]*")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def sources(path: Path) -> dict[str, str]:
    return {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}


def test_they_are_numbered_in_reading_order() -> None:
    assert [path.name[:3] for path in NOTEBOOKS] == ["01_", "02_", "03_", "04_", "05_"]


@each
def test_a_notebook_is_valid_and_its_cells_have_names_that_last(path: Path) -> None:
    raw = path.read_text("utf-8")
    notebook = nbformat.reads(raw, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    names = [cell.id for cell in notebook.cells]
    assert len(set(names)) == len(names)
    # Editors give a new cell eight hexadecimal digits, or as much as a UUID.
    assert [name for name in names if re.fullmatch(r"[0-9a-f-]{8,}", name)] == []


@each
def test_a_notebook_holds_no_result_of_a_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert [cell.id for cell in code if cell.outputs or cell.execution_count is not None] == []
    assert [cell.id for cell in notebook.cells if cell.metadata] == []


@each
def test_a_notebook_runs_in_whatever_python_the_reader_has(path: Path) -> None:
    metadata = nbformat.read(path, as_version=4).metadata
    assert metadata.kernelspec.name == "python3"
    # A version would change with everyone who saves it.
    assert metadata.language_info == {"name": "python"}


@each
def test_a_notebook_names_no_place_of_one_machine(path: Path) -> None:
    found = {name: ABSOLUTE.findall(source) for name, source in sources(path).items()}
    assert {name: places for name, places in found.items() if places} == {}


@each
def test_a_notebook_starts_with_its_title_and_names_files_that_there_are(path: Path) -> None:
    texts = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    named = re.findall(
        r"\b(?:docs|scripts|conf|hipporag_torch)/[\w/.]*\w|\b\d\d_\w+\.ipynb", "\n".join(texts)
    )
    assert [
        name for name in named if not ((ROOT / name).exists() or (ROOT / "notebooks" / name).exists())
    ] == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('open("/srv/data.json")', ["/srv/data.json"]),
        ("cd ~/corpus", ["~/corpus"]),
        (r"C:\corpus", [r"C:\corpus"]),
        ("../shared/data, docs/graph.md, https://example.org/a, {folder}/b, a / b, x/y, <b>c</b>", []),
    ],
)
def test_an_absolute_path_is_told_from_a_relative_one(text: str, places: list[str]) -> None:
    assert ABSOLUTE.findall(text) == places
