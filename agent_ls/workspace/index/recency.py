"""Which files changed lately: uncommitted ones and those of the last commits."""

from __future__ import annotations

from agent_ls.workspace.git import GitError, Repository, split_z

COMMITS = 30


def recently_changed(repository: Repository, commits: int = COMMITS) -> dict[str, float]:
    """Path -> weight: 1 for what is uncommitted, for committed changes from 0.8 (the last commit) towards 0.

    Large commits (formatting, renames) count less for each of their files. {} where git has no answer, such
    as in a repository without commits.
    """
    found: dict[str, float] = {}
    try:
        log = repository.git(
            "log", f"-n{commits}", "--no-merges", "--name-only", "-z", "--format=%x01", check=False
        )
        for age, record in enumerate(log.data.split(b"\x01")[1:]):
            paths = [path.lstrip("\n") for path in split_z(record)]
            paths = [path for path in paths if path]
            for path in paths:
                weight = 0.8 * (1 - age / commits) / max(1.0, len(paths) / 10)
                found[path] = max(found.get(path, 0.0), weight)
        status = repository.git(
            "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", check=False
        )
        for entry in split_z(status.data):
            if len(entry) > 3:
                found[entry[3:]] = 1.0
    except GitError:
        return {}
    return found
