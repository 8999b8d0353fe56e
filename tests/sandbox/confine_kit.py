"""A repository, an agent's worktree of it and a scratch folder, for tests of the sandbox."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from attrs import frozen

from agent_ls.sandbox.confine import View


@frozen
class Place:
    """`home` is the HOME that confined processes are told; `repo` and `worktree` lie below `base`."""

    base: Path
    home: Path
    repo: Path
    worktree: Path
    scratch: Path

    def view(self, **changes: object) -> View:
        return View(self.worktree, self.repo, self.scratch, **changes)  # type: ignore[arg-type]


def git(cwd: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout


def make_place(base: Path, files: dict[str, str] | None = None) -> Place:
    """The repository lies in the home folder, beside secrets; the worktree elsewhere."""
    home = base / "home"
    repo = home / "src" / "project"
    repo.mkdir(parents=True)
    for name in (".ssh/id_rsa", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".git-credentials"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("SECRET")
    for name, text in {"f.txt": "original\n", ".gitignore": ".venv/\n", **(files or {})}.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "init", "-q")
    git(repo, "remote", "add", "origin", "https://user:SECRET@example.org/x.git")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    git(repo, "tag", "v1.2.3")
    worktree = base / "state" / "worktree"
    git(repo, "worktree", "add", "-q", "--detach", str(worktree))
    (worktree / "f.txt").write_text("agent's\n")
    scratch = base / "state" / "scratch"
    scratch.mkdir()
    return Place(base, home, repo, worktree, scratch)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below `folder` with its content, mode and link target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        else:
            found[name] = "folder"
    return found
