"""What `doctor` looks at. Each check says what it found and never raises."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_ls.cli.options import Context
from agent_ls.errors import AgentLsError
from agent_ls.settings import Settings, cache_dir, state_dir

_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN", "AGENT_LS_API_KEY")
_OLDEST_GIT = (2, 28)


@frozen
class Check:
    """One finding. `missing` means that `fix` can't work; `warning` that something optional lacks."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    details: Sequence[str] = ()
    remedy: str | None = None


def run_checks(context: Context) -> list[Check]:
    """All checks, in the order in which `fix` needs them."""
    settings = Settings()
    checks = [_python(), _guarded("git", _git)]
    root: Path | None = None
    try:
        root = context.repository().root
        checks.append(Check("repository", "ok", str(root)))
    except AgentLsError as error:
        checks.append(Check("repository", "missing", error.message, remedy=error.remedy))
    try:
        loaded = context.load(root)
        settings = loaded.settings
        set_ones = sorted(key for key, origin in loaded.origins.items() if origin != "default")
        details = [f"{key}: {loaded.origins[key]}" for key in set_ones]
        checks.append(Check("settings", "ok", f"{len(set_ones)} set, the rest are defaults", details))
    except AgentLsError as error:
        checks.append(Check("settings", "missing", error.message, remedy=error.remedy))
    checks.append(_guarded("sandbox", lambda: _sandbox(settings)))
    checks += [_permission(settings), _guarded("secrets", _secrets)]
    if root is not None:
        place = root
        checks.append(_guarded("tests", lambda: _tests(place, settings)))
    checks.append(_guarded("search", _ripgrep))
    checks.append(_guarded("model", lambda: _model(settings)))
    checks.append(_guarded("local models", _local_models))
    checks.append(_keys())
    checks += [_guarded("state", lambda: _folder("state", state_dir(), "AGENT_LS_STATE_DIR")),
               _guarded("cache", lambda: _folder("cache", cache_dir(), "AGENT_LS_CACHE_DIR"))]  # fmt: skip
    return checks


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except AgentLsError as error:
        return Check(name, "missing", error.message, remedy=error.remedy)
    except Exception as error:  # doctor must tell the rest, whatever one check runs into
        return Check(name, "warning", f"could not be checked: {type(error).__name__}: {error}")


def _python() -> Check:
    from agent_ls import __version__

    return Check("agent-ls", "ok", f"{__version__} on Python {platform.python_version()} ({sys.executable})")


def _git() -> Check:
    from agent_ls.sandbox.process import run_helper

    path = shutil.which("git")
    if path is None:
        return Check("git", "missing", "not found", remedy="Install git and put it on PATH.")
    said = (
        run_helper([path, "--version"], cwd=Path.cwd(), timeout=10).stdout.decode("utf-8", "replace").strip()
    )
    numbers = [int(part) for part in said.removeprefix("git version ").split(".")[:2] if part.isdigit()]
    if tuple(numbers) < _OLDEST_GIT:
        return Check("git", "warning", said, [path], "Versions before 2.28 are untested; update git.")
    return Check("git", "ok", said, [path])


def _sandbox(settings: Settings) -> Check:
    from agent_ls.sandbox._limits import limits_of
    from agent_ls.sandbox.confine import View, choose

    sandbox = choose(settings.sandbox)
    here = Path.cwd()
    details = sandbox.in_force(View(here, here, here, network=settings.network, limits=limits_of(settings)))
    if sandbox.name == "off":
        return Check(
            "sandbox",
            "warning",
            "off, because you said so",
            details,
            "Leave out --no-sandbox to confine tests.",
        )
    if sandbox.name == "landlock" and settings.sandbox == "auto":
        remedy = "Install bubblewrap (or allow user namespaces) for full isolation."
        return Check("sandbox", "warning", "landlock, as bubblewrap can't be used here", details, remedy)
    return Check("sandbox", "ok", sandbox.name, details)


_LEVELS = {
    "read": "read: no test is run, no file is changed",
    "test": "test: the configured test command may run, no file is changed",
    "refactor": "refactor: edits; no test and no public interface may change, all that passed must pass",
    "fix": "fix: edits; tests may be {tests}",
}
_TESTS = {"none": "neither added nor changed", "add": "added, not changed", "edit": "added and changed"}


def _permission(settings: Settings) -> Check:
    words = _LEVELS[settings.permission].format(tests=_TESTS[settings.tests])
    return Check("permission", "ok", words, ["a model can name no program; it gives ids of collected tests"])


def _secrets() -> Check:
    missing = importlib.util.find_spec("detect_secrets") is None
    if missing:
        remedy = "Run: pip install 'detect-secrets>=1.5,<2'"
        return Check("secrets", "warning", "found by our own shapes only", remedy=remedy)
    return Check("secrets", "ok", "replaced by placeholders in prompts, by [redacted] in events and reports")


def _tests(root: Path, settings: Settings) -> Check:
    from agent_ls.testing.plan import find_plan

    plan = find_plan(root, root, settings)
    return Check("tests", "ok", shlex.join(plan.argv), plan.reasons)


def _ripgrep() -> Check:
    path = shutil.which("rg")
    if path is None:
        return Check(
            "search",
            "warning",
            "without ripgrep (slower)",
            remedy="Install ripgrep (rg) for quicker searches.",
        )
    return Check("search", "ok", f"ripgrep ({path})")


def _model(settings: Settings) -> Check:
    name = settings.model
    if name == "repair":
        return Check("model", "ok", "repair (built in, no network)")
    from agent_ls.models import create

    create(settings).close()  # raises what `fix` would; loads and sends nothing
    if name.startswith("local:") and importlib.util.find_spec("xllamacpp") is None:
        return Check(
            "model",
            "missing",
            f"{name}: llama.cpp is not installed",
            remedy="Run: pip install 'agent-ls[local]'",
        )
    return Check("model", "ok", name, [f"at {settings.base_url}"] if settings.base_url else [])


def _local_models() -> Check:
    from agent_ls.models.catalog import list_models

    states = list_models()
    there = [state.model.name for state in states if state.path is not None]
    library = importlib.util.find_spec("xllamacpp") is not None
    runtime = "llama.cpp is installed" if library else "llama.cpp is not installed"
    if there and library:
        return Check(
            "local models", "ok", ", ".join(there), [str(state.path) for state in states if state.path]
        )
    remedy = "" if library else "pip install 'agent-ls[local]'"
    if not there:
        first = f"agent-ls model install {states[0].model.name}" if states else ""
        remedy = " && ".join(part for part in (remedy, first) if part)
    found = ", ".join(there) if there else "none installed"
    return Check("local models", "warning", found, [runtime], f"To use one: {remedy}")


def _keys() -> Check:
    there = [name for name in _KEYS if os.environ.get(name)]
    if there:
        return Check("keys", "ok", ", ".join(there) + " (values are not shown)")
    return Check(
        "keys", "ok", "none in the environment", ["hosted models need ANTHROPIC_API_KEY or OPENAI_API_KEY"]
    )


def _folder(name: str, path: Path, variable: str) -> Check:
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not os.access(nearest, os.W_OK) or not nearest.is_dir():
        return Check(
            name, "missing", f"{path} can't be written", remedy=f"Set {variable} to a folder that can."
        )
    free = shutil.disk_usage(nearest).free
    return Check(name, "ok", f"{path} ({free / 1e9:,.1f} GB free)")
