"""Reads the contracts in tools/: TOML front matter between "+++" lines, then the text for the model."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from attrs import evolve, frozen

from agent_ls.errors import UsageError
from agent_ls.resources import shipped
from agent_ls.settings import Permission
from agent_ls.toolbox.schema import schema_problems

PERMISSIONS: tuple[str, ...] = get_args(Permission)
"""From the least to the most: each level includes those before it."""

_PROJECT_MAX_BYTES = 20_000
_CAP_RANGE = (500, 200_000)


@frozen
class Contract:
    """One tool as tools/ describes it. `output_cap` is in characters; `more` tells how to get at output
    that was left out."""

    name: str
    permission: Permission
    output_cap: int
    more: str
    parameters: Mapping[str, Any]
    description: str


def parse_contract(text: str, source: str) -> tuple[dict[str, Any], str]:
    """(front matter, description). Raises UsageError that names `source` when either is missing or bad."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "+++" or "+++" not in (line.strip() for line in lines[1:]):
        raise UsageError(f"{source}: the file must start with TOML front matter between two lines '+++'")
    end = 1 + [line.strip() for line in lines[1:]].index("+++")
    try:
        front = tomllib.loads("\n".join(lines[1:end]))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source}: the front matter is not valid TOML: {error}") from None
    description = "\n".join(lines[end + 1 :]).strip()
    if not description:
        raise UsageError(f"{source}: there is no description below the front matter")
    return front, description


@cache
def shipped_contracts() -> Mapping[str, Contract]:
    """The contracts that come with agent-ls, by name. Raises UsageError for a damaged installation."""
    contracts = {}
    for path in sorted(shipped("tools").glob("*.md")):
        front, description = parse_contract(path.read_text("utf-8"), path.name)
        expected = {"name", "permission", "output_cap", "more", "parameters"}
        if set(front) != expected:
            raise UsageError(f"{path.name}: the front matter must have exactly {', '.join(sorted(expected))}")
        problems = schema_problems(front["parameters"])
        if front["name"] != path.stem:
            problems.append(f"name must be {path.stem!r}")
        if front["permission"] not in PERMISSIONS:
            problems.append(f"permission must be one of {', '.join(PERMISSIONS)}")
        problems += _cap_problems(front["output_cap"])
        if problems:
            raise UsageError(f"{path.name}: {'; '.join(problems)}")
        contracts[path.stem] = Contract(description=description, **front)
    return contracts


def contracts_for(project_dir: Path | None) -> dict[str, Contract]:
    """The shipped contracts with the descriptions and output caps that the project at `project_dir` puts
    in their place (`.agent-ls/tools/<name>.md`).

    A repository can change nothing else: no permission, no parameters, no new tools. Raises UsageError
    that names the file and what is wrong with it.
    """
    contracts = dict(shipped_contracts())
    folder = None if project_dir is None else project_dir / ".agent-ls" / "tools"
    if folder is None or not folder.is_dir():
        return contracts
    for path in sorted(folder.glob("*.md")):
        source = f".agent-ls/tools/{path.name}"
        if path.stem not in contracts:
            close = difflib.get_close_matches(path.stem, contracts, 1)
            known = f"did you mean {close[0]}.md?" if close else f"The tools are {', '.join(contracts)}."
            raise UsageError(
                f"{source}: there is no tool {path.stem!r}", f"Rename or remove the file; {known}"
            )
        contracts[path.stem] = _overridden(contracts[path.stem], path, source)
    return contracts


def _overridden(contract: Contract, path: Path, source: str) -> Contract:
    if path.is_symlink() or not path.is_file():
        raise UsageError(f"{source}: not a regular file")
    if path.stat().st_size > _PROJECT_MAX_BYTES:
        raise UsageError(f"{source}: larger than {_PROJECT_MAX_BYTES} bytes")
    try:
        front, description = parse_contract(path.read_text("utf-8"), source)
    except UnicodeDecodeError:
        raise UsageError(f"{source}: not UTF-8") from None
    for key, value in front.items():
        if key == "output_cap":
            problems = _cap_problems(value)
            if problems:
                raise UsageError(f"{source}: {problems[0]}")
        elif getattr(contract, key, None) != value or key == "description":
            raise UsageError(
                f"{source}: a project can't set {key!r}",
                "It can change the description and output_cap of a tool, nothing else.",
            )
    return evolve(contract, description=description, output_cap=front.get("output_cap", contract.output_cap))


def _cap_problems(value: object) -> list[str]:
    low, high = _CAP_RANGE
    if type(value) is not int or not low <= value <= high:
        return [f"output_cap must be a whole number from {low} to {high}"]
    return []
