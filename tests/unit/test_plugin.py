"""The plugin for Claude Code: its manifest, what it starts, and what its skills say of the server."""

import asyncio
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.extractors.sentences import SentencesExtractor

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugins" / "hipporag-torch"
SKILLS = ("hipporag-memory", "index-folder")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Anthropic's plugins reference: the fields that a manifest and an option of userConfig may have.
MANIFEST_FIELDS = {
    *("$schema", "name", "displayName", "version", "description", "author", "homepage", "repository"),
    *("license", "keywords", "defaultEnabled", "skills", "commands", "agents", "hooks", "mcpServers"),
    *("outputStyles", "lspServers", "experimental", "userConfig", "channels", "dependencies"),
}
OPTION_FIELDS = {"type", "title", "description"}
MORE_OPTION_FIELDS = {"sensitive", "required", "default", "multiple", "min", "max"}
OPTION_TYPES = {"string": str, "number": int, "boolean": bool, "directory": str, "file": str}


def manifest() -> dict[str, Any]:
    return json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text("utf-8"))


def launch() -> dict[str, Any]:
    """How the server is started: command, args, env."""
    servers = json.loads((PLUGIN / ".mcp.json").read_text("utf-8"))["mcpServers"]
    assert list(servers) == ["memory"]
    return servers["memory"]


def substituted(text: str, stated: dict[str, Any]) -> str:
    """As Claude Code puts the user's options in; those that are not stated have their default."""
    values = {key: option.get("default") for key, option in manifest()["userConfig"].items()} | stated
    told = {f"user_config.{key}": value for key, value in values.items()} | {"CLAUDE_PROJECT_DIR": "/tmp"}

    def value(found: re.Match[str]) -> str:
        given = told[found[1]]
        assert given is not None, f"{found[1]} would stay as it is"
        return json.dumps(given) if isinstance(given, bool) else str(given)

    return re.sub(r"\$\{([\w.]+)\}", value, text)


def configured(**stated: Any) -> Any:
    """The configuration that the launcher makes of the plugin's command with these options."""
    from hipporag_torch.service import launch as launcher

    arguments = [substituted(text, {"index": "/tmp/memory"} | stated) for text in launch()["args"]]
    after = arguments[arguments.index("hipporag-torch-mcp") + 1 :]
    return launcher.configured(launcher.parser().parse_args(after))


def test_the_manifest_has_what_is_required_and_only_documented_fields() -> None:
    told = manifest()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", told["name"])
    assert told.keys() <= MANIFEST_FIELDS
    assert told["description"]
    assert isinstance(told["keywords"], list)
    assert told["author"]["name"]
    assert told["license"] == PROJECT["license"]


def test_every_option_is_one_that_claude_code_knows_and_substitutes() -> None:
    used = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(launch())))
    options = manifest()["userConfig"]
    assert used == options.keys()
    for key, option in options.items():
        assert key.isidentifier()
        assert option.keys() >= OPTION_FIELDS
        assert option.keys() <= OPTION_FIELDS | MORE_OPTION_FIELDS
        assert all(option[field].strip() for field in OPTION_FIELDS)
        # One that is neither required nor has a default would reach the server as ${user_config.…}.
        assert option.get("required", False) != ("default" in option)
        assert isinstance(option.get("default", OPTION_TYPES[option["type"]]()), OPTION_TYPES[option["type"]])


def test_a_secret_is_never_an_argument() -> None:
    secrets = [key for key, option in manifest()["userConfig"].items() if option.get("sensitive")]
    assert secrets == ["llm_api_key"]
    assert not [text for text in launch()["args"] if "llm_api_key" in text]
    env = launch()["env"]
    assert env == {"HIPPORAG_LLM_API_KEY": "${user_config.llm_api_key}"}


def test_the_plugin_and_all_that_it_pins_have_the_version_of_the_package() -> None:
    version = PROJECT["version"]
    assert manifest()["version"] == version
    arguments = launch()["args"]
    assert launch()["command"] == "uvx"
    assert arguments[:1] == ["--from"]
    name, extras, pinned = re.fullmatch(r"([\w-]+)\[([\w,]+)\]==(\S+)", arguments[1]).groups()  # type: ignore[union-attr]
    assert (name, pinned) == (PROJECT["name"], version)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert arguments[2] in PROJECT["scripts"]
    for page in PLUGIN.rglob("*.md"):
        pins = re.findall(r"hipporag-torch\[[^]]*\]\S*", page.read_text("utf-8"))
        assert all(shlex.split(pin.rstrip("`'"))[0] == arguments[1] for pin in pins), page


def test_the_launcher_takes_the_command_and_asks_no_model_unless_one_is_named() -> None:
    cfg, stated = configured()
    assert cfg.index.path == "/tmp/memory"
    assert (cfg.index.read_only, cfg.serve.confirm_above, cfg.serve.transport) == (False, 50, "stdio")
    assert list(cfg.serve.roots) == ["/tmp"]
    assert cfg.extractor._target_.endswith("SentencesExtractor")
    assert cfg.reader._target_.endswith("ExtractiveReader")
    # What an index was made with is not overruled by the plugin.
    assert not stated & {"embedder", "graph", "text"}


def test_the_options_reach_the_server() -> None:
    cfg, stated = configured(
        llm="qwen3",
        llm_base_url="http://localhost:8000/v1",
        embedder="hashing",
        read_only=True,
        confirm_above=0,
        documents="/srv/notes",
    )
    assert (cfg.llm.model, cfg.llm.base_url) == ("qwen3", "http://localhost:8000/v1")
    assert cfg.llm.api_key_env == "HIPPORAG_LLM_API_KEY"
    assert cfg.extractor._target_.endswith("OpenIEExtractor")
    assert cfg.reader._target_.endswith("LLMReader")
    assert cfg.embedder._target_.endswith("HashingEmbedder")
    assert "embedder" in stated
    assert (cfg.index.read_only, cfg.serve.confirm_above) == (True, 0)
    assert list(cfg.serve.roots) == ["/tmp", "/srv/notes"]


def test_every_command_of_the_page_about_the_service_is_one_that_is_understood() -> None:
    from hipporag_torch.config import compose, require_known_keys
    from hipporag_torch.service import launch as launcher

    page = (ROOT / "docs" / "service.md").read_text("utf-8").replace("\\\n", " ")
    served = [shlex.split(line) for line in re.findall(r"\bhipporag-torch-mcp (--[^…\n]+)", page)]
    assert len(served) == 3
    for arguments in served:
        cfg, _ = launcher.configured(launcher.parser().parse_args(arguments))
        assert str(cfg.index.path).startswith("/srv/")
    kept = [shlex.split(line) for line in re.findall(r"^python scripts/index\.py (.+)$", page, re.M)]
    assert len(kept) == 2
    for arguments in kept:
        require_known_keys(compose("index", arguments), "index")


# The skills.


def skill(name: str) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    text = (PLUGIN / "skills" / name / "SKILL.md").read_text("utf-8")
    found = re.fullmatch(r"---\n(.*?)^---\n(.*)", text, re.S | re.M)
    assert found
    return yaml.safe_load(found[1]), found[2]


def spans(name: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`\n]+)`", skill(name)[1])


Tools = dict[str, dict[str, Any]]


def listed(index: Path, *, read_only: bool) -> Tools:
    """The server's tools by their names, as a client gets them listed."""
    pytest.importorskip("mcp", reason="what the skills say of the server is not checked: mcp is missing")
    from hipporag_torch.service.memory_service import MemoryService
    from hipporag_torch.service.server import build_server
    from hipporag_torch.store.store import Store

    def never() -> Any:
        raise AssertionError("listing the tools loads nothing")

    with MemoryService(store=Store(index, read_only=read_only), open_memory=never) as service:
        server = build_server(service, config=str, max_reads=1, version="0")
        return {tool.name: tool.model_dump(mode="json") for tool in asyncio.run(server.list_tools())}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return listed(tmp_path_factory.mktemp("index"), read_only=False)


def names_in(schema: Any) -> set[str]:
    """The names of all properties within a schema."""
    if isinstance(schema, list):
        return set().union(*map(names_in, schema))
    if not isinstance(schema, dict):
        return set()
    own = set(schema.get("properties", {}))
    return own.union(*map(names_in, schema.values()))


@pytest.mark.parametrize("name", SKILLS)
def test_the_front_matter_of_a_skill_is_valid(name: str) -> None:
    front, body = skill(name)
    assert front.keys() == {"name", "description"}
    assert front["name"] == name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", name)
    assert 0 < len(front["description"]) <= 1024
    assert not re.search(r"[<>]", front["description"])
    assert len(body.splitlines()) < 500


def test_there_are_the_two_skills_and_no_others() -> None:
    assert sorted(path.name for path in (PLUGIN / "skills").iterdir()) == sorted(SKILLS)


@pytest.mark.parametrize("name", SKILLS)
def test_all_that_a_skill_names_is_in_the_server(name: str, tools: Tools) -> None:
    """Tools, their arguments, the fields of what they give, and what a file's status may be."""
    schemas = [tool[key] for tool in tools.values() for key in ("input_schema", "output_schema")]
    statuses = re.findall(r"\w+", json.dumps(schemas).split('"added, unchanged')[1].split(" or left")[0])
    known = {*tools, *names_in(schemas), *statuses, "added", "unchanged", "left"}
    found = spans(name)
    assert len(found) > 20
    for span in found:
        call = re.fullmatch(r"(\w+)\(([\w, ]*)\)", span)
        if call:
            arguments = set(re.findall(r"\w+", call[2]))
            assert arguments == set(tools[call[1]]["input_schema"]["properties"]), span
        elif re.fullmatch(r"[a-z_]+", span):
            assert span in known, span
        else:
            assert span == "/plugin", span


def test_the_memory_skill_lists_every_tool_with_those_first_that_read_only_leaves(
    tools: Tools, tmp_path: Path
) -> None:
    told = re.findall(r"^\| `(\w+)\(", skill("hipporag-memory")[1], re.M)
    assert sorted(told) == sorted(tools)
    left = listed(tmp_path, read_only=True)
    assert sorted(told[: len(left)]) == sorted(left)
    assert all(tools[name]["annotations"]["read_only_hint"] for name in left)
    assert "index_folder" not in left


def test_the_costs_that_the_skills_name_are_those_of_the_code() -> None:
    assert OpenIEExtractor.calls_per_passage == 2
    assert SentencesExtractor.calls_per_passage == 0
    assert "two for each new passage with a chat model, else none" in skill("hipporag-memory")[1]
    assert "two for each new passage with a chat model, none without one" in skill("index-folder")[1]
    serve = yaml.safe_load((ROOT / "conf" / "serve.yaml").read_text("utf-8"))["serve"]
    assert serve["confirm_seconds"] == 15 * 60
    assert all("for 15 minutes" in skill(name)[1] for name in SKILLS)
    assert manifest()["userConfig"]["confirm_above"]["default"] == serve["confirm_above"]
