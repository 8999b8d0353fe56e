"""The built wheel, installed into an empty environment, does the main job from outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*argv: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what is in the checkout, so that the checkout stays as it is."""
    place = tmp_path_factory.mktemp("build")
    source = place / "source"
    source.mkdir()
    for name in ("agent_ls", "tools", "prompts", "examples", "editors"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "ARCHITECTURE.md", "Makefile", ".gitignore"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", place / "dist", source, cwd=place)
    [built] = (place / "dist").glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_what_it_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped_as = {"tools": "tools", "prompts": "prompts", "examples/sample": "sample", "editors/nvim": "nvim"}
    for folder, shipped in shipped_as.items():
        there = {
            f"agent_ls/_data/{shipped}/{path.relative_to(ROOT / folder).as_posix()}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert there
        assert there <= names, sorted(there - names)
    sources = {
        f"agent_ls/{p.relative_to(ROOT / 'agent_ls').as_posix()}"
        for pattern in ("*.toml", "*.scm")
        for p in (ROOT / "agent_ls").rglob(pattern)
    }
    assert sources <= names
    assert "agent_ls/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


@pytest.mark.slow
def test_the_installed_wheel_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    where = run(python, "-c", "import agent_ls; print(agent_ls.__file__)", cwd=outside).stdout
    assert where.startswith(str(environment))
    program = environment / "bin" / "agent-ls"
    assert run(program, "--version", cwd=outside).stdout.startswith("agent-ls ")
    done = run(program, "demo", "--json", cwd=outside, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["verdict"], document["exit_code"]) == (1, "fixed", 0)
    assert document["files_changed"] == ["meterly/period.py"]
    assert len(document["tests"]["fixed"]) == 3
    assert document["tests"]["final"] == {"passed": 21, "failed": 0, "errors": 0, "skipped": 0}
    assert list(outside.iterdir()) == []
