import glob
import os
import subprocess

import pytest
from attack_kit import FACTS, HERE, refused


def places():
    """git's folders by every name they may have."""
    found = [FACTS["git"]]
    pointer = os.path.join(HERE, ".git")
    if os.path.isfile(pointer):
        own = open(pointer).read().strip().removeprefix("gitdir: ")
        found += [own, os.path.normpath(os.path.join(own, "..", ".."))]
    return sorted({os.path.realpath(path) for path in found} | set(found))


@pytest.mark.parametrize("name", ["hooks/pre-commit", "hooks/post-checkout", "config", "config.worktree", "HEAD", "refs/heads/evil", "packed-refs", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "index", "logs/HEAD", "commondir", "gitdir"])
def test_write_below_git(name):
    for place in places():
        path = os.path.join(place, name)
        refused(os.open, path, os.O_WRONLY | os.O_CREAT)


def test_write_worktree_records():
    for place in places():
        for path in glob.glob(place + "/worktrees/*/*"):
            if os.path.isfile(path):
                refused(os.open, path, os.O_WRONLY)


def test_make_folders_and_links_below_git():
    for place in places():
        refused(os.mkdir, place + "/hooks2")
        refused(os.symlink, "/tmp/x", place + "/hooks3")
        refused(os.rename, place + "/hooks", place + "/hooks4")
        refused(os.link, os.path.join(HERE, "conftest.py"), place + "/hooks/pre-push")


@pytest.mark.parametrize("arguments", ["commit -qam evil", "branch evil", "tag evil", "config core.hooksPath /tmp", "update-ref refs/heads/evil HEAD", "stash", "gc", "remote add evil https://example.org/x.git"])
def test_git_itself(arguments):
    result = subprocess.run(["git", *arguments.split()], capture_output=True, cwd=HERE)
    assert result.returncode != 0, result.stdout


def test_no_token_in_the_remotes():
    seen = subprocess.run(["git", "remote", "-v"], capture_output=True, cwd=HERE).stdout
    assert b"SECRET" not in seen
    for place in places():
        try:
            text = open(place + "/config").read()
        except OSError:
            continue
        assert "SECRET" not in text, place
