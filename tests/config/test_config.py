"""Layers, errors and the trust boundary of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.config import KEYS, load
from agent_ls.errors import UsageError
from agent_ls.settings import Limits, Settings


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("AGENT_LS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_LS_CONFIG_DIR", str(tmp_path / "user"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_file_the_defaults_hold(repo: Path) -> None:
    loaded = load(repo, {})
    assert loaded.settings == Settings()
    assert set(loaded.origins) == set(KEYS)
    assert set(loaded.origins.values()) == {"default"}
    assert load(None, {}).settings == Settings()


def test_each_layer_wins_over_the_one_below(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["user", "pyproject", "repo", "environment", "command line"]
    write(tmp_path / "user" / "config.toml", "".join(f"{key} = 1\n" for key in _INTS))
    write(repo / "pyproject.toml", "[tool.agent-ls]\n" + "".join(f"{key} = 2\n" for key in _INTS[1:]))
    write(repo / ".agent-ls" / "config.toml", "".join(f"{key} = 3\n" for key in _INTS[2:]))
    for key in _INTS[3:]:
        monkeypatch.setenv(f"AGENT_LS_{key.upper()}", "4")
    loaded = load(repo, dict.fromkeys(_INTS[4:], "5"))
    found = {**_flat(loaded.settings)}
    assert [found[key] for key in _INTS] == [1, 2, 3, 4, 5]
    origins = [loaded.origins[key] for key in _INTS]
    assert origins[0] == str(tmp_path / "user" / "config.toml")
    assert origins[1] == f"[tool.agent-ls] in {repo / 'pyproject.toml'}"
    assert origins[2] == str(repo / ".agent-ls" / "config.toml")
    assert origins[3] == "environment variable AGENT_LS_" + _INTS[3].upper()
    assert origins[4] == "command line"
    assert len(names) == len(_INTS)


_INTS = ["max_steps", "max_failures", "max_tokens", "candidates", "samples"]


def _flat(settings: Settings) -> dict[str, Any]:
    return {key: getattr(settings.limits if hasattr(settings.limits, key) else settings, key) for key in KEYS}


@pytest.mark.parametrize(
    ("toml", "key", "expected"),
    [
        ("test_command = \"python -m pytest 'a b'\"", "test_command", ("python", "-m", "pytest", "a b")),
        ('test_command = ["make", "check all"]', "test_command", ("make", "check all")),
        ("max-steps = 7", "max_steps", 7),
        ("max_cost = 3", "max_cost", 3.0),
        ('max_cost = "none"', "max_cost", None),
        ("timeout = 0.5", "timeout", 0.5),
        ('model = "local:small"', "model", "local:small"),
        ('tests = "none"', "tests", "none"),
        ("network = false", "network", False),
        ('sandbox = "bwrap"', "sandbox", "bwrap"),
        ('include = ["docs/a.md", "b, c.md"]', "include", ("docs/a.md", "b, c.md")),
        ("temperature = 0", "temperature", 0.0),
    ],
)
def test_values_of_a_repository_file(repo: Path, toml: str, key: str, expected: Any) -> None:
    write(repo / ".agent-ls" / "config.toml", toml)
    value = _flat(load(repo, {}).settings)[key]
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("network", "Yes", True),
        ("network", "0", False),
        ("include", "a.md, b.md,", ("a.md", "b.md")),
        ("pass_env", "HTTP_PROXY", ("HTTP_PROXY",)),
        ("max_tokens", "400_000", 400000),
        ("max_steps", "unlimited", None),
        ("test_command", "tox -e py", ("tox", "-e", "py")),
        ("sandbox", "off", "off"),
        ("sandbox", "landlock", "landlock"),
        ("test_memory_mb", "512", 512),
        ("test_processes", "100", 100),
        ("test_cpu_s", "none", None),
        ("api_key", "k", "k"),
        ("base_url", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
    ],
)
def test_values_of_the_environment(
    repo: Path, monkeypatch: pytest.MonkeyPatch, key: str, text: str, expected: Any
) -> None:
    monkeypatch.setenv(f"AGENT_LS_{key.upper()}", text)
    assert _flat(load(repo, {}).settings)[key] == expected
    monkeypatch.delenv(f"AGENT_LS_{key.upper()}")
    assert _flat(load(repo, {key: text}).settings)[key] == expected


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("modle = 'x'", ["'modle'", "config.toml", "'model'"]),
        ("max_step = 1", ["'max_step'", "'max_steps'"]),
        ("zzz = 1", ["'zzz'", "Valid keys", "max_steps"]),
        ("limits = {max_steps = 1}", ["'limits'"]),
        ("max_steps = '3'", ["max_steps", "whole number", "config.toml"]),
        ("max_steps = true", ["max_steps", "whole number"]),
        ("max_steps = 1.5", ["max_steps", "whole number"]),
        ("max_steps = 0", ["at least 1"]),
        ("max_failures = -1", ["at least 1"]),
        ("timeout = 0", ["greater than 0"]),
        ("timeout = nan", ["finite"]),
        ("max_cost = inf", ["finite"]),
        ("temperature = 3", ["between 0 and 2"]),
        ("model = 3", ["model must be a text"]),
        ('model = "a\\u0000b"', ["NUL"]),
        ("strategy = 'guidde'", ["did you mean 'guided'"]),
        ("permission = 'all'", ["'read'", "'fix'"]),
        ("test_command = ''", ["test_command", "not empty"]),
        ("test_command = []", ["test_command", "not empty"]),
        ('test_command = "pytest \'a"', ["split into words"]),
        ("test_command = [1]", ["list of texts"]),
        ("include = 'a'", ["list of texts"]),
        ("network = 'yes'", ["true or false"]),
        ("max_steps = ", ["not valid TOML", "config.toml"]),
        ("api_key = 'very-secret-key'", ["api_key", "not allowed", "AGENT_LS_API_KEY"]),
        ("base_url = 'http://evil'", ["base_url", "not allowed"]),
        ("pass_env = ['AWS_SECRET']", ["pass_env", "not allowed"]),
        ("pass_env = []", ["pass_env", "not allowed"]),
        ("sandbox = 'off'", ["sandbox = 'off'", "not allowed"]),
        ("network = true", ["network = true", "not allowed"]),
        ("test_disk_mb = 9000", ["test_disk_mb = 9000", "not allowed"]),
        ("test_processes = 5000", ["test_processes = 5000", "not allowed"]),
    ],
)
@pytest.mark.parametrize("where", ["own", "pyproject"])
def test_what_a_repository_may_not_say(repo: Path, toml: str, parts: list[str], where: str) -> None:
    if where == "own":
        write(repo / ".agent-ls" / "config.toml", toml)
    else:
        write(repo / "pyproject.toml", "[project]\nname = 'x'\n[tool.agent-ls]\n" + toml)
        parts = [part.replace("config.toml", "pyproject.toml") for part in parts]
    with pytest.raises(UsageError) as caught:
        load(repo, {})
    said = str(caught.value)
    for part in parts:
        assert part in said
    assert caught.value.remedy
    assert "very-secret-key" not in said


def test_the_users_file_may_say_it_all(repo: Path, tmp_path: Path) -> None:
    lines = [
        "api_key = 'k'",
        "base_url = 'http://localhost'",
        "sandbox = 'off'",
        "pass_env = ['A']",
        "network = true",
        "test_disk_mb = 9000",
    ]
    write(tmp_path / "user" / "config.toml", "\n".join(lines))
    settings = load(repo, {}).settings
    assert settings.api_key == "k"
    assert settings.sandbox == "off"
    assert settings.network
    assert settings.pass_env == ("A",)


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("AGENT_LS_MODLE", "x", ["AGENT_LS_MODLE", "environment", "'AGENT_LS_MODEL'"]),
        ("AGENT_LS_MAX_STEPS", "many", ["AGENT_LS_MAX_STEPS", "whole number"]),
        ("AGENT_LS_NETWORK", "perhaps", ["true or false"]),
    ],
)
def test_errors_of_the_environment(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, parts: list[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as caught:
        load(repo, {})
    for part in parts:
        assert part in str(caught.value)


def test_variables_that_are_no_settings_are_left_alone(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE_DIR", "CACHE_DIR", "GITHUB_URL", "GITLAB_URL", "RESULTS", "RUN"):
        monkeypatch.setenv(f"AGENT_LS_{name}", "x")
    assert load(repo, {}).settings == Settings()


def test_the_command_line_knows_its_keys() -> None:
    with pytest.raises(UsageError, match=r"(?s)'sampels'.*command line.*'samples'"):
        load(None, {"sampels": "3"})
    assert load(None, {"model": None}).settings == Settings()


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", "model = 'caf\xe9'".encode("latin-1"), b"# " + b"x" * 1_100_000]
)
def test_files_that_are_no_configuration(repo: Path, data: bytes) -> None:
    path = repo / ".agent-ls" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"config\.toml"):
        load(repo, {})


def test_a_byte_order_mark_is_fine(repo: Path) -> None:
    path = repo / ".agent-ls" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbfmax_steps = 3\n")
    assert load(repo, {}).settings.limits == Limits(max_steps=3)


def test_a_broken_pyproject_that_never_mentions_us_is_not_ours(repo: Path) -> None:
    write(repo / "pyproject.toml", "this is [not toml")
    assert load(repo, {}).settings == Settings()
    write(repo / "pyproject.toml", "tool = 3\nname = 'agent-ls'\n")
    assert load(repo, {}).settings == Settings()


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=20), max_size=4))
def test_any_command_line_gives_settings_or_a_usage_error(overrides: dict[str, str]) -> None:
    try:
        assert isinstance(load(None, overrides).settings, Settings)
    except UsageError as error:
        assert error.remedy


@pytest.mark.parametrize("file", ["pyproject.toml", ".agent-ls/config.toml"])
@pytest.mark.parametrize("model", ["openai:gpt", "anthropic:claude"])
def test_a_repository_may_not_send_itself_to_a_hosted_model(
    repo: Path, file: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "[tool.agent-ls]\n" if file == "pyproject.toml" else ""
    write(repo / file, f'{table}model = "{model}"')
    with pytest.raises(UsageError, match="only you may name one"):
        load(repo, {})
    assert load(repo, {"model": model}).settings.model == model
    assert load(repo, {"model": "repair"}).settings.model == "repair"
    monkeypatch.setenv("AGENT_LS_BASE_URL", "http://127.0.0.1:9/v1")
    assert load(repo, {}).settings.model == model  # the user chose where it goes
