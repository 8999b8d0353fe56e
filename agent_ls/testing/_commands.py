"""What a configured test command is: pytest, unittest, or something we only see the outside of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from attrs import frozen

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?(\.exe)?$|pypy(\d+(\.\d+)?)?$|py$")


_VALUED_OPTIONS = ("--with", "--extra", "--group", "--python", "-p", "--env", "-e")


@frozen
class Recognised:
    """`arguments` follow `-m pytest` or `-m unittest`; `launcher` is uv, poetry, hatch, pdm or pipenv."""

    kind: Literal["pytest", "unittest", "command"]
    interpreter: str | None
    arguments: tuple[str, ...]
    interpreter_options: tuple[str, ...] = ()
    launcher: str | None = None
    junit: tuple[str, ...] | None = None


def recognise(command: Sequence[str]) -> Recognised:
    """Classify an argv list. `uv run pytest -q`, `python -m pytest`, `pytest` and alike are pytest."""
    rest = list(command)
    launcher = None
    name = PurePath(rest[0]).name
    if name in ("uv", "poetry", "pdm", "pipenv", "rye", "hatch") and "run" in rest[1:2]:
        launcher = name
        rest = rest[2:]
        while rest and rest[0].startswith("-"):
            # Options of the launcher; those with a separate value are not worth guessing.
            if "=" not in rest[0] and rest[0] in (
                "--with",
                "--extra",
                "--group",
                "--python",
                "-p",
                "--env",
                "-e",
            ):
                rest = rest[1:]
            rest = rest[1:]
        if not rest:
            return Recognised("command", None, tuple(command))
        name = PurePath(rest[0]).name
    if name in ("pytest", "py.test"):
        return Recognised("pytest", _sibling_python(rest[0]), tuple(rest[1:]), launcher=launcher)
    if _PYTHON.match(name):
        options: list[str] = []
        position = 1
        while (
            position < len(rest)
            and rest[position].startswith("-")
            and rest[position] not in ("-m", "-c", "-")
        ):
            options.append(rest[position])
            if rest[position] in ("-W", "-X") and position + 1 < len(rest):
                position += 1
                options.append(rest[position])
            position += 1
        if rest[position : position + 1] == ["-m"] and position + 1 < len(rest):
            module, arguments = rest[position + 1], tuple(rest[position + 2 :])
            named = rest[0] if launcher is None else None
            if module in ("pytest", "py.test"):
                return Recognised("pytest", named, arguments, tuple(options), launcher)
            if module == "unittest":
                return Recognised("unittest", named, arguments, tuple(options), launcher)
    return Recognised("command", None, tuple(command), junit=_junit(command))


def _sibling_python(program: str) -> str | None:
    """`/x/bin/pytest` belongs to `/x/bin/python`; a bare `pytest` says nothing."""
    path = PurePath(program)
    return str(path.parent / "python") if len(path.parts) > 1 else None


_JUNIT_OPTIONS: dict[str, tuple[str, ...]] = {
    "vitest": ("--reporter=junit", "--outputFile={junit}"),
    "gotestsum": ("--junitfile={junit}",),
    "phpunit": ("--log-junit", "{junit}"),
    "rspec": ("--format", "RspecJunitFormatter", "--out", "{junit}"),
    "ctest": ("--output-junit", "{junit}"),
    "bats": ("--report-formatter", "junit"),
    "nose2": ("--plugin", "nose2.plugins.junitxml", "--junit-xml", "--junit-xml-path={junit}"),
}


def _junit(command: Sequence[str]) -> tuple[str, ...] | None:
    if "{junit}" in " ".join(command):
        return ()
    words = [PurePath(word).name for word in command[:3]]
    for word in words:
        if word in _JUNIT_OPTIONS:
            return _JUNIT_OPTIONS[word]
    return None
