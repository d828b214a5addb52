"""docs/configuration.md from the YAML files of conf/ and the comments in them.

`python -m hipporag_torch.config_reference [CONF] [OUTPUT]` writes it anew; by default conf and
docs/configuration.md, seen from where the command is called.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hipporag_torch.errors import ConfigError

EXPERIMENTS = "experiment"
"""The group whose options are whole runs: they are listed with their figures, not key by key."""

_LONGEST_DEFAULT = 90
_HEAD = """\
# Configuration

Written from `conf/` by `python -m hipporag_torch.config_reference`; change the comments there, not this page.

A command is composed from groups. `group=option` chooses an option, `group.key=value` sets a key of it, and
`key=value` one of the command's own keys: `python scripts/evaluate.py retriever=dense runtime.device=cpu`.
A key that nothing reads is an error.

`???` has to be given; `${group.key}` takes its value from there; `{… 24 …}` is a mapping of 24 keys, too long
for here. Keys in one row share an explanation. Options are named behind a default that not all of the group
have."""


@dataclass(frozen=True)
class Row:
    """Keys that one comment explains, as dotted names, with their defaults as the file writes them."""

    keys: tuple[str, ...]
    defaults: tuple[str, ...]
    comment: str


@dataclass(frozen=True)
class ConfFile:
    """A YAML file: what it says of itself, the options that it chooses, its own keys."""

    name: str
    description: str
    defaults: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass
class _Merged:
    """One row of a group's table: each default with the options that have it, in order."""

    keys: tuple[str, ...]
    comment: str
    options: dict[tuple[str, ...], list[str]] = field(default_factory=dict)


def configuration_page(conf: Path) -> str:
    """The page that describes the folder `conf`: its commands, its groups, its experiments.

    The same files give the same text. Raises `ConfigError` if `conf` is no folder, or a file no mapping.
    """
    if not conf.is_dir():
        raise ConfigError(f"there is no folder {conf} (looked from {Path.cwd()}); name the folder of configs")
    commands = [read_conf(path) for path in sorted(conf.glob("*.yaml"))]
    folders = sorted({path.parent for path in conf.rglob("*.yaml")} - {conf})
    groups = {folder.relative_to(conf).as_posix(): sorted(folder.glob("*.yaml")) for folder in folders}
    experiments = groups.pop(EXPERIMENTS, [])
    parts = [_HEAD, "## Commands", *(_command(command) for command in commands), "## Groups"]
    for group, paths in groups.items():
        users = [command.name for command in commands if _uses(command, group)]
        parts.append(_group(group, [read_conf(path) for path in paths], users))
    if experiments:
        parts += ["## Experiments", _experiments(experiments)]
    return "\n\n".join(parts) + "\n"


def read_conf(path: Path) -> ConfFile:
    """A file's description, defaults and keys; `_target_` and its like, and `hydra`, are left out.

    The comment at the top describes the file. Where a key's own comment follows at once, it is its first
    line. Raises `ConfigError` if the file is no mapping.
    """
    lines, root = _composed(path)
    if root is None:
        return ConfFile(path.stem, " ".join(_comment_above(lines, len(lines))), (), ())
    first = root.value[0][0]
    top = _comment_above(lines, first.start_mark.line)
    # Behind the first line stands what explains the first key, unless that explains itself.
    own = 1 if top and _is_setting(first.value) else len(top)
    settings = [(key, value) for key, value in root.value if _is_setting(key.value)]
    rows = _rows(lines, settings, prefix="", inherited="", skip=own if _is_setting(first.value) else 0)
    defaults = next((value for key, value in root.value if key.value == "defaults"), None)
    return ConfFile(path.stem, " ".join(top[:own]), tuple(_choices(defaults)), tuple(rows))


def read_expected(path: Path) -> list[tuple[str, str, str]]:
    """(metric, range, where it was published) for each figure that an experiment's file expects."""
    _, root = _composed(path)
    expected = next((value for key, value in root.value if key.value == "expected"), None) if root else None
    figures = []
    for key, entry in expected.value if isinstance(expected, MappingNode) else []:
        told = {inner.value: value.value for inner, value in entry.value}
        figures.append((key.value, f"{told['low']}–{told['high']}", f"{told['source']}, {told['sure']}"))
    return figures


def _composed(path: Path) -> tuple[list[str], MappingNode | None]:
    """A file's lines and its tree; None for a file of comments alone."""
    text = path.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None and not isinstance(root, MappingNode):
        raise ConfigError(f"{path} must hold a mapping of keys, got a {root.id}")
    return text.splitlines(), root if root is not None and root.value else None


def _comment_above(lines: Sequence[str], line: int) -> list[str]:
    """The comment lines that end just above line `line`, without their `#`; Hydra's own are left out."""
    start = line
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    told = [text.strip().removeprefix("#").strip() for text in lines[start:line]]
    return [text for text in told if text and not text.startswith("@package")]


def _is_setting(key: str) -> bool:
    return not key.startswith("_") and key not in ("defaults", "hydra")


def _rows(
    lines: Sequence[str],
    settings: Sequence[tuple[Node, Node]],
    *,
    prefix: str,
    inherited: str,
    skip: int = 0,
) -> list[Row]:
    """The rows of a mapping. Keys without a comment stand in the row of the key before them.

    inherited: the comment of the mapping itself, for a first key without one. skip: lines above the first
    key that are not its own.
    """
    rows: list[Row] = []
    joins = False
    for number, (key, value) in enumerate(settings):
        own = _comment_above(lines, key.start_mark.line)[skip if number == 0 else 0 :]
        comment = " ".join(own) or (inherited if number == 0 else "")
        name = prefix + key.value
        if isinstance(value, MappingNode) and not value.flow_style and _has_comments(lines, value):
            inner = _rows(lines, value.value, prefix=f"{name}.", inherited=comment)
            if comment and inner[0].comment != comment:
                inner.insert(0, Row((name,), (), comment))
            rows += inner
            joins = False
        elif joins and not own:
            last = rows.pop()
            rows.append(Row((*last.keys, name), (*last.defaults, _written(value)), last.comment))
        else:
            rows.append(Row((name,), (_written(value),), comment))
            joins = True
    return rows


def _has_comments(lines: Sequence[str], node: MappingNode) -> bool:
    return any(
        _comment_above(lines, key.start_mark.line)
        or (isinstance(value, MappingNode) and _has_comments(lines, value))
        for key, value in node.value
    )


def _written(node: Node) -> str:
    """A value as YAML on one line; of a long list, or a long mapping to more than texts, only its length."""
    text = _flow(node)
    texts = isinstance(node, MappingNode) and all(isinstance(value, ScalarNode) for _, value in node.value)
    if len(text) <= _LONGEST_DEFAULT or texts or isinstance(node, ScalarNode):
        return text
    return f"[… {len(node.value)} …]" if isinstance(node, SequenceNode) else f"{{… {len(node.value)} …}}"


def _flow(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(value)}" for key, value in node.value) + "}"
    if isinstance(node, SequenceNode):
        return "[" + ", ".join(map(_flow, node.value)) + "]"
    start, end = node.start_mark, node.end_mark
    source = start.buffer[start.pointer : end.pointer] if start.buffer is not None else node.value
    return " ".join(source.rstrip("\0").split()) or "null"


def _choices(defaults: Node | None) -> Iterator[str]:
    """`group=option` for each entry of a defaults list; overrides of Hydra's own groups are left out."""
    for entry in defaults.value if defaults is not None else []:
        for key, value in entry.value if isinstance(entry, MappingNode) else []:
            if not key.value.startswith("override "):
                yield f"{key.value}={value.value}"


def _uses(command: ConfFile, group: str) -> bool:
    return any(choice.split("=")[0].split("@")[0] == group for choice in command.defaults)


def _command(command: ConfFile) -> str:
    parts = [f"### `scripts/{command.name}.py`", _prose(command.description)]
    if command.defaults:
        parts.append("Groups: " + ", ".join(map(_code, command.defaults)) + ".")
    if command.rows:
        parts.append(_table([(row.keys, _joined(row.defaults), row.comment) for row in command.rows]))
    return "\n\n".join(part for part in parts if part)


def _group(group: str, options: Sequence[ConfFile], users: Sequence[str]) -> str:
    used = f"In {', '.join(users)}." if users else ""
    if group.startswith("hydra/"):
        used = "In every command, for sweeps (`-m`)."
    listed = "\n".join(f"- {_code(option.name)}: {_prose(option.description)}" for option in options)
    rows = [(row.keys, _default_cell(row, len(options)), row.comment) for row in _merged(options)]
    parts = [f"### `{group}`", used, listed, _table(rows) if rows else ""]
    return "\n\n".join(part for part in parts if part)


def _merged(options: Sequence[ConfFile]) -> list[_Merged]:
    """The rows of all options; those with the same keys and comment are one, beside others of that key."""
    merged: dict[tuple[tuple[str, ...], str], _Merged] = {}
    for option in options:
        for row in option.rows:
            one = merged.setdefault((row.keys, row.comment), _Merged(row.keys, row.comment))
            one.options.setdefault(row.defaults, []).append(option.name)
    first = {key: place for place, key in reversed(list(enumerate(keys[0] for keys, _ in merged)))}
    return sorted(merged.values(), key=lambda row: first[row.keys[0]])


def _default_cell(row: _Merged, num_options: int) -> str:
    if len(row.options) == 1 and sum(map(len, row.options.values())) == num_options:
        return _joined(next(iter(row.options)))
    return "<br>".join(f"{_joined(defaults)} ({', '.join(names)})" for defaults, names in row.options.items())


def _experiments(paths: Sequence[Path]) -> str:
    """A table of the committed runs."""
    lines = [
        "`python scripts/evaluate.py experiment=NAME`. Expected is what was published, and how sure that is: "
        "A, read at its source; B, quoted by another; C, neither.",
        "",
        "| name | run | expected |",
        "|---|---|---|",
    ]
    for path in paths:
        source = path.read_text(encoding="utf-8").splitlines()
        told = (line.removeprefix("#").strip() for line in source if line.startswith("#"))
        described = next((line for line in told if line and not line.startswith("@package")), "")
        by_source: dict[str, list[str]] = {}
        for metric, figures, published in read_expected(path):
            by_source.setdefault(published, []).append(f"{metric} {figures}")
        expected = "<br>".join(f"{', '.join(found)} ({where})" for where, found in by_source.items())
        lines.append(f"| {_code(path.stem)} | {_prose(described)} | {expected} |")
    return "\n".join(lines)


def _table(rows: Sequence[tuple[tuple[str, ...], str, str]]) -> str:
    lines = ["| key | default | |", "|---|---|---|"]
    lines += [f"| {_joined(keys)} | {default} | {_prose(comment)} |" for keys, default, comment in rows]
    return "\n".join(lines)


def _joined(values: Sequence[str]) -> str:
    return ", ".join(map(_code, values))


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _prose(text: str) -> str:
    """A comment as Markdown: what would be markup outside its own backticks stays as it is written."""
    pieces = text.replace("|", "\\|").split("`")
    for place in range(0, len(pieces), 2):
        pieces[place] = pieces[place].replace("*", "\\*").replace("<", "&lt;")
    return "`".join(pieces)


def main(arguments: Sequence[str]) -> None:
    """Write the page, or end with one sentence that says why not."""
    conf, output = [*arguments, *("conf", "docs/configuration.md")[len(arguments) :]][:2]
    try:
        text = configuration_page(Path(conf))
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    except (ConfigError, OSError) as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main(sys.argv[1:])
