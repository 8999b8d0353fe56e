"""tools/*.md and agent_ls/toolbox/*.py say the same."""

from __future__ import annotations

import types
import typing
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from agent_ls.errors import UsageError
from agent_ls.resources import shipped
from agent_ls.toolbox import registry
from agent_ls.toolbox.contracts import contracts_for, parse_contract, shipped_contracts
from agent_ls.toolbox.schema import schema_problems

NAMES = sorted(path.stem for path in shipped("tools").glob("*.md"))
NOT_TOOLS = {"__init__", "base", "contracts", "registry", "schema"}


def test_every_contract_has_code_and_the_reverse() -> None:
    modules = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - NOT_TOOLS
    assert set(NAMES) == modules
    assert set(shipped_contracts()) == modules


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema type that a field's annotation stands for, without texts and bounds."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [arg for arg in args if arg is not type(None)]
        return schema_of(inner)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(args[0])}
    if attrs.has(kind):
        hints = typing.get_type_hints(kind)
        fields = attrs.fields(kind)
        return {
            "type": "object",
            "properties": {field.name: schema_of(hints[field.name]) for field in fields},
            "required": sorted(field.name for field in fields if field.default is attrs.NOTHING),
        }
    return {"type": {str: "string", int: "integer", bool: "boolean", float: "number"}[kind]}


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema reduced to what `schema_of` can tell."""
    kept: dict[str, Any] = {"type": schema["type"]}
    if "enum" in schema:
        kept["enum"] = schema["enum"]
    if schema["type"] == "array":
        kept["items"] = bare(schema["items"])
    if schema["type"] == "object":
        kept["properties"] = {name: bare(inner) for name, inner in schema["properties"].items()}
        kept["required"] = sorted(schema.get("required", []))
    return kept


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_those_of_the_contract(name: str) -> None:
    module = import_module(f"agent_ls.toolbox.{name}")
    assert schema_of(module.Arguments) == bare(dict(shipped_contracts()[name].parameters))
    assert callable(module.run)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_explained(name: str) -> None:
    def walk(schema: dict[str, Any]) -> None:
        for inner in schema.get("properties", {}).values():
            assert inner["description"]
            walk(inner.get("items", {}))
            walk(inner)

    walk(dict(shipped_contracts()[name].parameters))


def test_a_schema_that_goes_unchecked_is_not_accepted() -> None:
    bad = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}, "required": ["b"]}
    assert schema_problems(bad) == [
        "parameters: additionalProperties must be false",
        "parameters: required 'b' is no property",
        "parameters.a: 'pattern' is not supported for string",
    ]
    assert schema_problems({"type": "null"})


def override(project: Path, name: str, text: str) -> None:
    folder = project / ".agent-ls" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_project_rewords_a_tool(tmp_path: Path) -> None:
    override(tmp_path, "read.md", "+++\noutput_cap = 900\n+++\nLook into a file.\n")
    contracts = contracts_for(tmp_path)
    assert (contracts["read"].description, contracts["read"].output_cap) == ("Look into a file.", 900)
    assert contracts["read"].parameters == shipped_contracts()["read"].parameters
    assert contracts["edit"] == shipped_contracts()["edit"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("edit.md", '+++\npermission = "read"\n+++\nx', "can't set 'permission'"),
        ("edit.md", '+++\nprogram = "sh"\n+++\nx', "can't set 'program'"),
        ("edit.md", '+++\n[parameters]\ntype = "object"\n+++\nx', "can't set 'parameters'"),
        ("edit.md", '+++\nname = "read"\n+++\nx', "can't set 'name'"),
        ("edit.md", "+++\noutput_cap = 1000000000\n+++\nx", "output_cap must be"),
        ("edit.md", "+++\noutput_cap = true\n+++\nx", "output_cap must be"),
        ("edit.md", "just text", "front matter"),
        ("edit.md", "+++\n= 3\n+++\nx", "not valid TOML"),
        ("edit.md", "+++\n+++\n\n", "no description"),
        ("shell.md", "+++\n+++\nRun a command.", "no tool 'shell'"),
        ("reed.md", "+++\n+++\nx", "did you mean read.md"),
        ("edit.md", "+++\n+++\n" + "x" * 30_000, "larger than"),
    ],
)
def test_a_project_can_change_nothing_else(tmp_path: Path, file: str, text: str, message: str) -> None:
    override(tmp_path, file, text)
    with pytest.raises(UsageError, match=message) as caught:
        contracts_for(tmp_path)
    assert f".agent-ls/tools/{file}" in str(caught.value)


def test_a_project_file_that_is_a_link_or_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("+++\n+++\nsecret\n")
    override(tmp_path, "other.md", "")
    (tmp_path / ".agent-ls/tools/other.md").unlink()
    (tmp_path / ".agent-ls/tools/read.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="regular file"):
        contracts_for(tmp_path)
    (tmp_path / ".agent-ls/tools/read.md").unlink()
    (tmp_path / ".agent-ls/tools/read.md").write_bytes(b"+++\n+++\n\xff")
    with pytest.raises(UsageError, match="UTF-8"):
        contracts_for(tmp_path)


def test_front_matter_and_description_are_told_apart() -> None:
    assert parse_contract("+++\r\na = 1\r\n+++\r\n\r\ntext\r\n+++\r\n", "x.md") == ({"a": 1}, "text\n+++")
