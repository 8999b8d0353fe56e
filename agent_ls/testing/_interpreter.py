"""Which Python runs a project's tests. Reads files only; the one program started is the interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, EnvBroken, UsageError
from agent_ls.sandbox.environment import scrubbed_env

if TYPE_CHECKING:
    from agent_ls.sandbox.confine import Mode
    from agent_ls.sandbox.process import ProcessResult

_REMEDY = "Name the interpreter with `interpreter` in [tool.agent-ls], or AGENT_LS_INTERPRETER."


@frozen
class Interpreter:
    """A Python executable, why it was chosen, and the virtual environment it belongs to."""

    path: str
    reason: str
    venv: Path | None = None


@frozen
class Facts:
    """What an interpreter says about itself. `pytest` is its version or None; `visible` its folders."""

    version: str
    pytest: str | None
    visible: tuple[Path, ...]
    sys_path: tuple[str, ...]


def find_interpreter(
    repo: Path,
    configured: str | None,
    named: str | None,
    launcher: str | None = None,
    cancel: CancelToken | None = None,
) -> Interpreter:
    """The interpreter for the checkout `repo`.

    Order: settings, the one the command names, the active environment, environments in the checkout, those
    that uv, poetry, hatch and pdm keep elsewhere, tox's, `python3` on PATH, our own. Raises UsageError when a
    configured one does not exist, EnvBroken when there is none at all, and Cancelled.
    """
    if configured:
        path = _executable(configured, repo)
        if path is None:
            raise UsageError(f"the configured interpreter {configured} is not an executable file", _REMEDY)
        return Interpreter(path, f"{configured} is configured as the interpreter", _venv_of(path))
    if named and os.sep in named:
        path = _executable(named, repo)
        if path is None:
            raise UsageError(f"the test command names {named}, which is not an executable file", _REMEDY)
        return Interpreter(path, f"the test command names {named}", _venv_of(path))
    for folder, reason in _environments(repo):
        path = _python_in(folder)
        if path is not None:
            return Interpreter(path, reason, folder if (folder / "pyvenv.cfg").is_file() else None)
    for name in dict.fromkeys([named or "python3", "python3", "python"]):
        found = shutil.which(name)
        if found is not None:
            real = _behind_shim(Path(found), repo, cancel)
            if real is not None:
                return Interpreter(str(real), f"{name} on PATH is {real}", _venv_of(str(real)))
    if sys.executable:
        return Interpreter(sys.executable, "no other interpreter was found: agent-ls's own", None)
    raise EnvBroken("no Python interpreter was found", _REMEDY)


def _environments(repo: Path) -> Iterator[tuple[Path, str]]:
    active = os.environ.get("VIRTUAL_ENV")
    if active and Path(active).resolve() != Path(sys.prefix).resolve():
        yield Path(active), f"the virtual environment {active} is active"
    conda = os.environ.get("CONDA_PREFIX")
    if conda and os.environ.get("CONDA_DEFAULT_ENV") not in (None, "base"):
        yield Path(conda), f"the conda environment {conda} is active"
    for name in (".venv", "venv", "env", ".env", "virtualenv"):
        if (repo / name / "pyvenv.cfg").is_file():
            yield repo / name, f"{name} in the repository is a virtual environment"
    yield from _managed(repo)
    for base in (".tox", ".nox"):
        for folder in sorted((repo / base).glob("py*"), reverse=True) + sorted((repo / base).glob("test*")):
            if (folder / "pyvenv.cfg").is_file():
                yield folder, f"{base}/{folder.name} is a virtual environment"


def _managed(repo: Path) -> Iterator[tuple[Path, str]]:
    """Environments that poetry, pipenv, hatch and pdm keep outside the checkout."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    marker = repo / ".pdm-python"
    if marker.is_file():
        python = Path(marker.read_text("utf-8", "replace").strip())
        if python.is_file():
            yield python.parent.parent, "pdm uses this environment (.pdm-python)"
    project = _project_name(repo)
    poetry = Path(os.environ.get("POETRY_VIRTUALENVS_PATH") or cache / "pypoetry/virtualenvs")
    if project and (repo / "poetry.lock").is_file():
        token = _poetry_name(project, repo)
        for folder in sorted(poetry.glob(f"{token}-py*"), reverse=True):
            yield folder, f"poetry keeps the project's environment in {folder}"
    if (repo / "Pipfile").is_file():
        for folder in sorted(data.glob(f"virtualenvs/{repo.name}-*")):
            mark = folder / ".project"
            if mark.is_file() and mark.read_text("utf-8", "replace").strip() == str(repo):
                yield folder, f"pipenv keeps the project's environment in {folder}"
    if project:
        for folder in sorted(data.glob(f"hatch/env/virtual/{project}/*/*")):
            if folder.name in (project, "hatch-test") or folder.name.startswith("hatch-test"):
                yield folder, f"hatch keeps the project's environment in {folder}"


def _poetry_name(project: str, repo: Path) -> str:
    """Poetry's name of an environment: the project's name, then a hash of the folder."""
    import base64
    import hashlib
    import re

    name = re.sub(r'[ $`!*@"\\\r\n\t]', "_", project.lower())[:42]
    digest = hashlib.sha256(os.path.normcase(str(repo.resolve())).encode()).digest()
    return f"{name}-{base64.urlsafe_b64encode(digest).decode()[:8]}"


def _project_name(repo: Path) -> str | None:
    import tomllib

    try:
        data = tomllib.loads((repo / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    for table in (data.get("project"), data.get("tool", {}).get("poetry")):
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            return str(table["name"])
    return None


def _executable(name: str, repo: Path) -> str | None:
    """An absolute path, not resolved further: a venv's python is a symlink that must stay one."""
    if os.sep not in name and not (repo / name).exists():
        return shutil.which(name)
    path = Path(os.path.abspath(repo / Path(name).expanduser()))  # noqa: PTH100
    if path.is_dir():
        return _python_in(path)
    return str(path) if os.access(path, os.X_OK) else None


def _python_in(folder: Path) -> str | None:
    for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
        if os.access(folder / name, os.X_OK):
            return os.path.abspath(folder / name)  # noqa: PTH100 (a symlink that must stay one)
    return None


def _venv_of(path: str) -> Path | None:
    folder = Path(path).parent.parent
    return folder if (folder / "pyvenv.cfg").is_file() else None


def _behind_shim(path: Path, repo: Path, cancel: CancelToken | None) -> Path | None:
    """A pyenv shim is a shell script that needs pyenv's state: ask the interpreter where it really is."""
    if "shims" not in path.parts:
        return path
    from agent_ls.sandbox import process

    result = process.run(
        [str(path), "-I", "-c", "import sys; print(sys.executable)"],
        cwd=repo,
        env={**scrubbed_env(("PYENV_VERSION", "PYENV_ROOT", "ASDF_DATA_DIR", "MISE_DATA_DIR"))},
        timeout=20,
        cancel=cancel,
    )
    if result.cancelled:
        raise Cancelled
    lines = result.output.strip().splitlines()
    if result.exit_code == 0 and lines and Path(lines[-1]).is_file():
        return Path(lines[-1])
    return None


_PROBE = """
import json, sys
def version(name):
    try:
        try:
            from importlib import metadata
        except ImportError:
            import importlib_metadata as metadata
        return metadata.version(name)
    except Exception:
        return None
print("\\n" + json.dumps({
    "version": ".".join(map(str, sys.version_info[:3])),
    "pytest": version("pytest"),
    "prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix, getattr(sys, "base_exec_prefix", sys.prefix)],
    "path": sys.path,
}))
"""


_probed: dict[str, Facts] = {}


def probe_interpreter(
    found: Interpreter, repo: Path, mode: Mode = "auto", cancel: CancelToken | None = None
) -> Facts:
    """Ask the interpreter, once, for its version, pytest's version and its folders.

    One that lies in the checkout `repo` is the project's code, whatever its name: it runs in the sandbox
    `mode`. Raises EnvBroken, UsageError when there is no sandbox, and Cancelled.
    """
    if found.path not in _probed:
        _probed[found.path] = _probe(found.path, repo, mode, cancel)
    return _probed[found.path]


def _prefixes(path: str) -> list[Path]:
    """Where the Python behind an environment's link is installed. The checkout says it, so only folders that
    hold a Python count: nothing else may be uncovered by it."""
    found = [Path(path).resolve().parent.parent]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = ((_venv_of(path) or Path(path).parent) / "pyvenv.cfg").read_text("utf-8")
        for line in text.splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                found.append(Path(value.strip()).resolve().parent)
    return [
        folder
        for folder in dict.fromkeys(found)
        if len(folder.parts) > 2
        and not Path.home().is_relative_to(folder)
        and any(os.path.isfile(folder / "bin" / name) for name in ("python3", "python"))  # noqa: PTH113
    ]


def _confined(
    path: str, repo: Path, mode: Mode, env: dict[str, str], cancel: CancelToken | None
) -> ProcessResult:
    """The probe in a sandbox where the checkout holds nothing but the interpreter's environment."""
    from agent_ls.sandbox.confine import View, choose

    environment = _venv_of(path) or Path(path)
    back = tuple(_prefixes(path))
    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        tree, scratch = Path(folder, "tree"), Path(folder, "scratch")
        tree.mkdir()
        scratch.mkdir()
        view = View(tree, repo, scratch, readonly=(environment,), visible=back)
        return choose(mode, cancel).run([path, "-c", _PROBE], view=view, env=env, timeout=60, cancel=cancel)


def _probe(path: str, repo: Path, mode: Mode, cancel: CancelToken | None) -> Facts:
    from agent_ls.sandbox import process

    # In the root folder, so that no file of the project is imported in place of a standard module.
    env = {name: value for name, value in scrubbed_env().items() if not name.startswith("PYTHON")}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    foreign = mode != "off" and Path(path).is_relative_to(repo)
    if foreign:
        result = _confined(path, repo, mode, env, cancel)
    else:
        result = process.run([path, "-c", _PROBE], cwd="/", env=env, timeout=60, cancel=cancel)
    if result.cancelled:
        raise Cancelled
    try:
        data = json.loads(result.output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        detail = result.output.strip()[-300:] or f"exit code {result.exit_code}"
        raise EnvBroken(f"the interpreter {path} does not work: {detail}", _REMEDY) from None
    executable = Path(path)
    folders = [executable.parent, executable.resolve().parent, *map(Path, data["prefixes"])]
    folders += [Path(entry) for entry in data["path"] if entry.startswith("/")]
    if foreign:  # what it says of itself is the project's word
        known = [repo, repo.resolve(), *_prefixes(path)]
        folders = [folder for folder in folders if any(folder.is_relative_to(base) for base in known)]
    visible = tuple(dict.fromkeys(folder for folder in folders if folder.exists() and len(folder.parts) > 1))
    return Facts(data["version"], data["pytest"], visible, tuple(data["path"]))
