"""docs/configuration.md: what the configs' comments become, and that the page is up to date."""

from pathlib import Path

import pytest

from hipporag_torch.config_reference import Row, configuration_page, main, read_conf, read_expected
from hipporag_torch.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
REFRESH = "python -m hipporag_torch.config_reference"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def rows_of(folder: Path, text: str) -> tuple[Row, ...]:
    return read_conf(written(folder, {"a.yaml": text}) / "a.yaml").rows


def test_the_page_is_what_the_configs_say() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    if page != configuration_page(ROOT / "conf"):
        pytest.fail(f"docs/configuration.md is not what conf/ says; refresh it with: {REFRESH}")


def test_every_option_of_every_group_is_on_the_page() -> None:
    page = configuration_page(ROOT / "conf")
    for path in (ROOT / "conf").rglob("*.yaml"):
        assert f"`{path.stem}`" in page or f"`scripts/{path.name.replace('.yaml', '.py')}`" in page


def test_a_key_its_default_as_written_and_the_comment_above(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "# A file.\n_target_: x.Y\n# In two\n# lines.\nrate: 2.0e-7\n# B.\nb: ${a.b}\n")
    assert rows == (Row(("rate",), ("2.0e-7",), "In two lines."), Row(("b",), ("${a.b}",), "B."))


def test_keys_without_a_comment_stand_with_the_key_before(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, '_target_: x\n# Both.\na: 1\nb: ""\n# Alone.\nc: [1, 2]\n')
    assert rows == (Row(("a", "b"), ("1", '""'), "Both."), Row(("c",), ("[1, 2]",), "Alone."))


@pytest.mark.parametrize("first", ["_target_: x\n", "defaults: [a]\n"])
def test_the_whole_comment_at_the_top_describes_the_file(tmp_path: Path, first: str) -> None:
    conf = read_conf(written(tmp_path, {"a.yaml": f"# Said\n# of it.\n{first}a: 1\n"}) / "a.yaml")
    assert (conf.description, conf.rows) == ("Said of it.", (Row(("a",), ("1",), ""),))


def test_only_the_first_line_describes_a_file_that_begins_with_a_key(tmp_path: Path) -> None:
    conf = read_conf(written(tmp_path, {"a.yaml": "# @package _global_\n# File.\n# Key.\na:\n"}) / "a.yaml")
    assert (conf.description, conf.rows) == ("File.", (Row(("a",), ("null",), "Key."),))


def test_inner_keys_are_dotted_where_they_are_explained(tmp_path: Path) -> None:
    text = "# F.\n_target_: x\n# Outer.\nouter:\n  # Inner.\n  a: 1\nnext: 2\n"
    text += "# Told.\nb:\n  c: 1\n  # D.\n  d: 2\n"
    assert rows_of(tmp_path, text) == (
        Row(("outer",), (), "Outer."),
        Row(("outer.a",), ("1",), "Inner."),
        Row(("next",), ("2",), ""),
        Row(("b.c",), ("1",), "Told."),
        Row(("b.d",), ("2",), "D."),
    )


def test_a_mapping_without_comments_is_one_default(tmp_path: Path) -> None:
    text = '_target_: x\n# Texts.\na:\n  b: "x: "\n  c: ""\n# Many.\nd:\n'
    text += "".join(f"  name {number}: [some=thing]\n" for number in range(9))
    assert rows_of(tmp_path, text) == (
        Row(("a",), ('{b: "x: ", c: ""}',), "Texts."),
        Row(("d",), ("{… 9 …}",), "Many."),
    )


def test_what_hydra_reads_is_no_key(tmp_path: Path) -> None:
    text = "# C.\ndefaults:\n  - m: big\n  - m@own_m: null\n  - _self_\n  - override hydra/x: y\n# A.\na: 1\n"
    conf = read_conf(written(tmp_path, {"a.yaml": text + "hydra:\n  job: {}\n"}) / "a.yaml")
    assert conf.defaults == ("m=big", "m@own_m=null")
    assert conf.rows == (Row(("a",), ("1",), "A."),)


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.yaml must hold a mapping of keys, got a sequence"):
        rows_of(tmp_path, "- a\n")


PAGE = """\
## Commands

### `scripts/ask.py`

Ask.

Groups: `m=big`.

| key | default | |
|---|---|---|
| `q` | `???` | The question \\| several. |

## Groups

### `hydra/launcher`

In every command, for sweeps (`-m`).

- `many`: Many at once.

| key | default | |
|---|---|---|
| `jobs` | `2` | How many. |

### `m`

In ask.

- `big`: Big.
- `own`: Yours, with \\*.
- `small`: Small.

| key | default | |
|---|---|---|
| `dim` | `8` (big)<br>`4` (small) | Length. |
| `dim` | `???` (own) | Length, yours. |
| `batch` | `1` | At once. |

## Experiments

`python scripts/evaluate.py experiment=NAME`. Expected is what was published, and how sure that is: \
A, read at its source; B, quoted by another; C, neither.

| name | run | expected |
|---|---|---|
| `table_1` | The first. | recall@2 0.3–0.4, f1 0.5–0.6 (paper, A)<br>em 0.1–0.2 (thesis, C) |
| `table_2` | The second. |  |
"""
FILES = {
    "ask.yaml": "# Ask.\ndefaults:\n  - m: big\n# The question | several.\nq: ???\n",
    "__init__.py": "",
    "m/small.yaml": "# Small.\n_target_: x\n# Length.\ndim: 4\n# At once.\nbatch: 1\n",
    "m/big.yaml": "# Big.\n_target_: x\n# Length.\ndim: 8\n# At once.\nbatch: 1\n",
    "m/own.yaml": "# Yours, with *.\n_target_: x\n# Length, yours.\ndim: ???\n# At once.\nbatch: 1\n",
    "hydra/launcher/many.yaml": "# Many at once.\ndefaults: [joblib]\n# How many.\njobs: 2\n",
    "experiment/table_2.yaml": "# @package _global_\n# The second.\nseed: 1\n",
    "experiment/table_1.yaml": (
        "# @package _global_\n# The first.\n# Not tried.\ndefaults: [a]\nexpected:\n"
        "  recall@2: {low: 0.3, high: 0.4, source: paper, sure: A}\n"
        "  em: {low: 0.1, high: 0.2, source: thesis, sure: C}\n"
        "  f1: {low: 0.5, high: 0.6, source: paper, sure: A}\n"
    ),
}


def test_a_small_folder_gives_this_page(tmp_path: Path) -> None:
    page = configuration_page(written(tmp_path, FILES))
    assert page[page.index("## Commands") :] == PAGE


def test_expected_figures_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, FILES) / "experiment" / "table_1.yaml"
    assert [metric for metric, _, _ in read_expected(path)] == ["recall@2", "em", "f1"]


def test_the_command_writes_the_page_or_says_why_not(tmp_path: Path) -> None:
    conf, page = written(tmp_path / "conf", FILES), tmp_path / "page.md"
    main([str(conf), str(page)])
    assert page.read_text("utf-8") == configuration_page(conf)
    with pytest.raises(
        SystemExit, match=r"^error: there is no folder .*nowhere .*name the folder of configs$"
    ):
        main([str(tmp_path / "nowhere"), str(page)])
