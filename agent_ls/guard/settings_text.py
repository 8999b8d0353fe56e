"""Settings of test runners as flat pairs, whatever the file: TOML, INI, JSON, YAML, a script's object."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from pathlib import PurePosixPath
from typing import Any

from agent_ls.guard.syntax import Expr, substitute
from agent_ls.guard.world import World

Settings = dict[str, list[str]]
"""Dotted key -> its values as texts (a list has several)."""


def settings_of(world: World, path: str, text: str) -> Settings:
    """All settings of a file; {} for what can't be read."""
    name, suffix = PurePosixPath(path).name.lower(), PurePosixPath(path).suffix.lower()
    try:
        if suffix == ".toml":
            return _flat(tomllib.loads(text))
        if suffix in (".ini", ".cfg") or name in (".coveragerc", "mocha.opts"):
            return _ini(text)
        if suffix == ".json" or name in (".mocharc", ".nycrc", ".babelrc"):
            return _flat(json.loads(_without_comments(text)))
        if suffix in (".yml", ".yaml"):
            return _yaml(text)
        if suffix in (".xml", ".csproj", ".runsettings", ".props"):
            return _xml(text)
        if suffix in (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts"):
            return _script(world, path)
    except (ValueError, configparser.Error, RecursionError):
        return {}
    return {}


def _flat(value: Any, prefix: str = "") -> Settings:
    found: Settings = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            found.update(_flat(inner, f"{prefix}.{key}" if prefix else str(key)))
    elif isinstance(value, list):
        plain = [item for item in value if not isinstance(item, dict | list)]
        found[prefix] = [_word(item) for item in plain]
        for number, item in enumerate(value):
            if isinstance(item, dict | list):
                found.update(_flat(item, f"{prefix}.{number}"))
    else:
        found[prefix] = [_word(value)]
    return found


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*//.*$|,(?=\s*[}\]])", "", text)


def _ini(text: str) -> Settings:
    parser = configparser.RawConfigParser(allow_no_value=True, strict=False)
    parser.read_string(text)
    found: Settings = {}
    for section in parser.sections():
        for key, value in parser.items(section):
            lines = [line.strip() for line in (value or "").splitlines() if line.strip()]
            found[f"{section}.{key}"] = lines
    return found


def _yaml(text: str) -> Settings:
    """Only what lines say: `key: value` under the keys that are indented less."""
    found: Settings = {}
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"^(\s*)(?:- )?([\w.-]+):\s*(.*?)\s*(?:#.*)?$", line)
        if match is None:
            item = re.match(r"^(\s*)- (.+)$", line)
            if item is not None and stack:
                found.setdefault(".".join(key for _, key in stack), []).append(item.group(2).strip("'\""))
            continue
        depth = len(match.group(1)) + (2 if line.lstrip().startswith("- ") else 0)
        while stack and stack[-1][0] >= depth:
            stack.pop()
        stack.append((depth, match.group(2)))
        if match.group(3):
            found.setdefault(".".join(key for _, key in stack), []).append(match.group(3).strip("'\""))
    return found


def _xml(text: str) -> Settings:
    found: Settings = {}
    stack: list[str] = []
    for match in re.finditer(
        r"<(/?)([\w.:-]+)[^<>]*?(/?)>([^<]*)", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    ):
        closing, tag, alone, value = match.groups()
        if closing:
            while stack and stack.pop() != tag:
                pass
        elif not alone:
            stack.append(tag)
            if value.strip():
                found.setdefault(".".join(stack), []).append(value.strip())
    return found


def _script(world: World, path: str) -> Settings:
    file = world.parse(path)
    found: Settings = {}
    if file is None:
        return found
    for stmt in file.stmts:
        for expr in stmt.exprs:
            for part in substitute(expr, file.env).walk():
                if part.op == "dict":
                    _object(part, "", found)
                    break
    return found


def _object(value: Expr, prefix: str, found: Settings) -> None:
    for pair in value.args:
        if pair.op != "pair":
            continue
        key = f"{prefix}.{pair.args[0].value}" if prefix else str(pair.args[0].value)
        inner = pair.args[1]
        if inner.op == "dict":
            _object(inner, key, found)
        elif inner.op in ("list", "tuple"):
            found[key] = [_literal(item) for item in inner.args]
        else:
            found[key] = [_literal(inner)]


def _literal(expr: Expr) -> str:
    if expr.op == "lit":
        return _word(expr.value)
    return str(expr.value) if expr.op == "regex" else expr.text
