"""Merges the layers of configuration into one `Settings`, and says where each value came from.

Lowest to highest: built-in defaults, the user's file, the repository's `[tool.agent-ls]` in
`pyproject.toml`, its `.agent-ls/config.toml`, the environment (`AGENT_LS_<KEY>`), the command line.
"""

from __future__ import annotations

import difflib
import math
import os
import shlex
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from agent_ls.errors import UsageError
from agent_ls.settings import Limits, Settings

ENV_PREFIX = "AGENT_LS_"
NOT_SETTINGS = frozenset(
    ENV_PREFIX + name
    for name in (
        # read elsewhere, at any time
        "STATE_DIR",
        "CACHE_DIR",
        "CONFIG_DIR",
        "GITHUB_URL",
        "GITLAB_URL",
        # set for the processes that agent-ls starts, of which it may itself be one
        "RUN",
        "RESULTS",
        "ROOT",
        "IDS",
        "TRACE",
        "ORIGINAL_ROOT",
    )
)
"""Environment variables of ours that are no settings."""
_MAX_FILE_BYTES = 1_000_000


@attrs.frozen
class Loaded:
    """The settings in force; `origins` maps each key to where its value came from, for people."""

    settings: Settings
    origins: dict[str, str]


def _field_types() -> dict[str, Any]:
    kinds = typing.get_type_hints(Settings)
    kinds.pop("limits")
    kinds.update(typing.get_type_hints(Limits))
    return kinds


_TYPES = _field_types()
_LIMIT_KEYS = frozenset(field.name for field in attrs.fields(Limits))
KEYS = tuple(sorted(_TYPES))
"""Every valid key. Limits are flat: `max_steps`, not `limits.max_steps`."""

_MINIMUM: dict[str, tuple[float, bool]] = {  # smallest value, and whether that value itself is allowed
    "max_steps": (1, True),
    "max_failures": (1, True),
    "max_same_failures": (2, True),
    "max_growth": (1, True),
    "max_idle_edits": (1, True),
    "max_returns": (1, True),
    "max_alternations": (2, True),
    "max_repeats": (2, True),
    "guard_timeout": (0, True),
    "max_tokens": (1, True),
    "max_cost": (0, True),
    "timeout": (0, False),
    "test_timeout": (0, False),
    "per_test_timeout": (0, False),
    "test_memory_mb": (64, True),
    "test_processes": (16, True),
    "test_file_mb": (1, True),
    "test_disk_mb": (16, True),
    "test_cpu_s": (1, True),
    "context_window": (512, True),
    "threads": (1, True),
    "temperature": (0, True),
    "samples": (1, True),
    "candidates": (1, True),
    "seed": (0, True),
}


_MOST = {"test_processes": 4096, "test_file_mb": 2048, "test_disk_mb": 8192}
"""What a repository may ask for at most: it can tighten the sandbox's limits, not loosen them."""


def user_config_path() -> Path:
    """The user's own file; the environment variable `AGENT_LS_CONFIG_DIR` moves its folder."""
    override = os.environ.get(ENV_PREFIX + "CONFIG_DIR")
    if override:
        return Path(override) / "config.toml"
    import platformdirs

    return Path(platformdirs.user_config_dir("agent-ls", appauthor=False)) / "config.toml"


def load(repo_root: Path | None, overrides: Mapping[str, Any]) -> Loaded:
    """Merge all layers for the repository at `repo_root` (None: outside any repository).

    `overrides` is the command line: keys as in `Settings` and `Limits`, values typed or as text;
    None means "not given". Raises UsageError that names the place, the key and the nearest valid key.
    """
    values: dict[str, Any] = {}
    origins = dict.fromkeys(KEYS, "default")

    def put(table: Mapping[str, Any], place: str, *, text: bool, trusted: bool = True) -> None:
        for raw_key, raw in table.items():
            key = raw_key.replace("-", "_")
            if key not in _TYPES:
                raise _unknown_key(raw_key, place)
            value = _convert(key, raw, place, text=text)
            if not trusted:
                _refuse_from_repository(key, value, place)
            values[key] = value
            origins[key] = place

    from_repository: tuple[str, ...] = ()
    user_file = user_config_path()
    put(_read_toml(user_file), str(user_file), text=False)
    if repo_root is not None:
        pyproject = repo_root / "pyproject.toml"
        table = _pyproject_table(pyproject)
        put(table, f"[tool.agent-ls] in {pyproject}", text=False, trusted=False)
        own = repo_root / ".agent-ls" / "config.toml"
        put(_read_toml(own), str(own), text=False, trusted=False)
        from_repository = (f"[tool.agent-ls] in {pyproject}", str(own))
    for name, raw in _environment(os.environ).items():
        key = name.removeprefix(ENV_PREFIX).lower()
        if key not in _TYPES:
            raise _unknown_key(name, "the environment")
        values[key] = _convert(key, raw, f"environment variable {name}", text=True)
        origins[key] = f"environment variable {name}"
    put({k: v for k, v in overrides.items() if v is not None}, "command line", text=True)

    if origins["model"].startswith(from_repository) and values.get("base_url") is None:
        _refuse_hosted(values["model"], origins["model"])
    limits = Limits(**{key: values.pop(key) for key in list(values) if key in _LIMIT_KEYS})
    return Loaded(Settings(**values, limits=limits), origins)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(ENV_PREFIX) and name not in NOT_SETTINGS
    }


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than a configuration can be", "Remove or shorten the file.")
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}", "Correct the file's permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})", "Save the file as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", "Correct the file.") from error


def _pyproject_table(path: Path) -> Mapping[str, Any]:
    # A pyproject.toml that never mentions us is none of our business, not even when it is broken.
    try:
        if not path.is_file() or b"agent-ls" not in path.read_bytes():
            return {}
    except OSError:
        return {}
    tool = _read_toml(path).get("tool", {})
    table = tool.get("agent-ls", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.agent-ls is not a table", "Write it as [tool.agent-ls].")
    return table


def _unknown_key(key: str, place: str) -> UsageError:
    plain = key.removeprefix(ENV_PREFIX).lower().replace("-", "_") if key.isupper() else key.replace("-", "_")
    near = difflib.get_close_matches(plain.lower(), KEYS, n=1, cutoff=0.5)
    if near:
        shown = ENV_PREFIX + near[0].upper() if key.startswith(ENV_PREFIX) else near[0]
        remedy = f"The nearest valid key is {shown!r}."
    else:
        remedy = f"Valid keys: {', '.join(KEYS)}."
    return UsageError(f"unknown key {key!r} in {place}", remedy)


def _refuse_from_repository(key: str, value: Any, place: str) -> None:
    forbidden = (
        key in ("api_key", "base_url", "pass_env")
        or (key == "sandbox" and value == "off")
        or (key == "network" and value)
        or (key in _MOST and value is not None and value > _MOST[key])
    )
    if forbidden:
        shown = f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        shown = key if key in ("api_key", "base_url", "pass_env") else shown
        raise UsageError(
            f"{shown} is not allowed in {place}:"
            " a repository must not be able to redirect or unleash the agent",
            f"Remove it there; set it in {user_config_path()} or as {ENV_PREFIX}{key.upper()}.",
        )


def _refuse_hosted(model: str, place: str) -> None:
    """A key in the environment is no wish to send a cloned repository's code anywhere."""
    if model.startswith(("anthropic:", "openai:")):
        raise UsageError(
            f"model = {model!r} in {place} would send this repository to a service: only you may name one",
            f"Give --model {model}, or set {ENV_PREFIX}MODEL or `model` in {user_config_path()}.",
        )


def _convert(key: str, raw: Any, place: str, *, text: bool) -> Any:
    """Check `raw` against the field's type. With `text`, strings are read as the type's notation."""
    kind, optional = _strip_none(_TYPES[key])
    if optional and isinstance(raw, str):
        word = raw.strip().lower()
        if (word in ("none", "unlimited") and kind in (int, float)) or (not word and text):
            return None

    def wrong(expected: str) -> UsageError:
        shown = "a value" if key == "api_key" else repr(raw)
        return UsageError(f"{key} must be {expected}, not {shown} ({place})", f"Correct {key}.")

    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if raw not in choices:
            near = difflib.get_close_matches(str(raw), choices, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise wrong(f"one of {', '.join(map(repr, choices))}{hint}")
        return raw
    if get_origin(kind) is tuple:
        return _convert_list(key, raw, wrong, text=text)
    if kind is bool:
        return _convert_bool(raw, wrong, text=text)
    if kind in (int, float):
        return _convert_number(key, raw, kind, wrong, text=text)
    if not isinstance(raw, str):
        raise wrong("a text")
    if "\0" in raw:
        raise wrong("a text without NUL characters")
    return raw


def _strip_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) in (Union, types.UnionType):
        rest = [arg for arg in get_args(kind) if arg is not type(None)]
        return rest[0], len(rest) != len(get_args(kind))
    return kind, False


_Wrong = Callable[[str], UsageError]


def _convert_list(key: str, raw: Any, wrong: _Wrong, *, text: bool) -> tuple[str, ...]:
    if isinstance(raw, str) and key == "test_command":
        try:
            raw = shlex.split(raw)
        except ValueError as error:
            raise wrong(f"a command that can be split into words ({error})") from error
    elif isinstance(raw, str) and text:
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    if not isinstance(raw, list | tuple) or not all(isinstance(part, str) for part in raw):
        raise wrong("a list of texts" + (" or one text" if key == "test_command" else ""))
    if key == "test_command" and not (raw and raw[0]):
        raise wrong("a command, not empty")
    if any("\0" in part for part in raw):
        raise wrong("a list of texts without NUL characters")
    return tuple(raw)


def _convert_bool(raw: Any, wrong: _Wrong, *, text: bool) -> bool:
    if isinstance(raw, bool):
        return raw
    if text and isinstance(raw, str):
        word = raw.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
    raise wrong("true or false")


def _convert_number(key: str, raw: Any, kind: type, wrong: _Wrong, *, text: bool) -> int | float:
    expected = "a whole number" if kind is int else "a number"
    if text and isinstance(raw, str):
        try:
            raw = kind(raw.strip().replace("_", ""))
        except ValueError as error:
            raise wrong(expected) from error
    if isinstance(raw, bool) or not isinstance(raw, int if kind is int else int | float):
        raise wrong(expected)
    if not math.isfinite(raw):
        raise wrong(f"{expected}, finite")
    minimum, included = _MINIMUM.get(key, (-math.inf, True))
    if raw < minimum or (raw == minimum and not included):
        raise wrong(f"{expected} {'of at least' if included else 'greater than'} {minimum:g}")
    if key == "temperature" and raw > 2:
        raise wrong("a number between 0 and 2")
    return int(raw) if kind is int else float(raw)
