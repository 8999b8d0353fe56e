"""Repositories in every state a user may have left them in, and the fingerprint that must not change."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from attrs import field, frozen

Fingerprint = dict[str, object]


def git(cwd: Path, *args: str, check: bool = True, input: bytes | None = None) -> str:
    """The user's own git, with the user's settings."""
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, input=input)
    assert not check or done.returncode == 0, (args, done.stderr.decode())
    return os.fsdecode(done.stdout)


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def start(root: Path, *options: str) -> Path:
    """A repository with two commits, a tag, a second branch and an ignore file."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main", *options)
    write(root, {
        "app.py": "one = 1\n", "pkg/mod.py": "two = 2\n", "pkg/old.py": "old = 1\n" * 9,
        "run.sh": "#!/bin/sh\n", ".gitignore": "build/\n*.pyc\n.venv/\n_version.py\n",
    })  # fmt: skip
    (root / "run.sh").chmod(0o755)
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to("app.py")
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    git(root, "tag", "-f", "-am", "v1", "v1")
    git(root, "branch", "-f", "other")
    write(root, {"app.py": "one = 1\nthree = 3\n"})
    git(root, "commit", "-qam", "second")
    return root


def _entry(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    kind = stat.S_IFMT(status.st_mode)
    content: object = None
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return kind, stat.S_IMODE(status.st_mode), status.st_mtime_ns, content


def fingerprint(root: Path, ours: Path | None = None) -> Fingerprint:
    """Everything of the user's: the tree with modes and times, and git's directories but the objects.

    `ours` is the path of a session's worktree; git's record of it, `agent-ls/*` branches and the empty
    directories around them are no part of the user's state.
    """
    print_: Fingerprint = {}
    git_dirs = {Path(git(root, "rev-parse", option).removesuffix("\n")) for option in
                ("--absolute-git-dir", "--git-common-dir")}  # fmt: skip
    git_dirs = {(root / path).resolve() for path in git_dirs}
    for top in {root.resolve(), *git_dirs}:
        for folder, folders, names in os.walk(top):
            here = Path(folder)
            in_git = any(here.is_relative_to(path) for path in git_dirs) or ".git" in here.parts
            if here.name == "objects" and in_git:
                folders.clear()
                continue
            if not in_git and here != root.resolve():
                print_[folder] = _entry(here)
            for name in names:
                path = here / name
                text = str(path)
                if "/heads/agent-ls/" in text or (ours is not None and _record_of(path, ours)):
                    continue
                entry = _entry(path)
                if name.startswith("sharedindex."):
                    entry = (*entry[:2], 0, entry[3])  # every reading git command renews its time stamp
                print_[text] = entry
            for name in folders:
                if (here / name).is_symlink():
                    print_[str(here / name)] = _entry(here / name)
    return print_


def _record_of(path: Path, ours: Path) -> bool:
    for parent in path.parents:
        if parent.parent.name == "worktrees":
            link = parent / "gitdir"
            return link.is_file() and link.read_bytes().removesuffix(b"\n") == os.fsencode(ours / ".git")
    return False


def difference(before: Fingerprint, after: Fingerprint) -> dict[str, tuple[object, object]]:
    """The paths that are not the same, with both states: easier to read than two dictionaries."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    }


def tree_files(root: Path, tree: str) -> dict[str, tuple[str, bytes]]:
    """path -> (mode, content) of a tree, read with the user's git."""
    out: dict[str, tuple[str, bytes]] = {}
    listing = subprocess.run(["git", "ls-tree", "-r", "-z", tree], cwd=root, capture_output=True, check=True)
    for line in listing.stdout.split(b"\0")[:-1]:
        meta, name = line.split(b"\t", 1)
        mode, kind, sha = meta.decode().split()
        data = sha.encode()
        if kind == "blob":
            data = subprocess.run(
                ["git", "cat-file", "blob", sha], cwd=root, capture_output=True, check=True
            ).stdout
        out[os.fsdecode(name)] = (mode, data)
    return out


@frozen
class Case:
    """A repository to build and what its snapshot must hold: content by path, None for absent paths."""

    build: Callable[[Path], Path]
    files: dict[str, bytes | None] = field(factory=dict)
    left_out: tuple[str, ...] = ()
    dirty: bool = True


def clean(root: Path) -> Path:
    return start(root)


def dirty(root: Path) -> Path:
    start(root)
    write(root, {"app.py": "one = 100\n"})
    (root / "pkg/old.py").unlink()
    (root / "run.sh").chmod(0o644)
    return root


def staged(root: Path) -> Path:
    start(root)
    write(root, {"app.py": "staged\n", "fresh.py": "fresh\n", "pkg/secret.pem": "key", "gone.py": "x"})
    git(root, "add", "-A")
    (root / "gone.py").unlink()
    write(root, {"app.py": "staged, then changed\n"})
    git(root, "mv", "pkg/old.py", "pkg/new.py")
    git(root, "rm", "-q", "--cached", "pkg/mod.py")
    return root


NON_UTF8 = os.fsdecode(b"latin-\xe9.txt")


def untracked(root: Path) -> Path:
    start(root)
    write(root, {
        "new/deep/file.py": "new\n", "line\nbreak.txt": "newline", "ümläut \"q\" 'x'.txt": "ü",
        NON_UTF8: b"\xe9", ".env": "TOKEN=1", "keys/id_rsa": "private", "empty": "",
        "build/out.o": "ignored", "_version.py": "v", "tool": "#!/bin/sh\n",
        "-dash": "dash", ":(top)magic": "magic", "*": "star",
    })  # fmt: skip
    (root / "tool").chmod(0o755)
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "folder-link").symlink_to("pkg")
    os.mkfifo(root / "fifo")
    (root / "empty-folder").mkdir()
    return root


def special_over_tracked(root: Path) -> Path:
    """A tracked file became a socket, another a directory, a directory a file, another a link."""
    start(root)
    write(root, {"a/b.py": "b\n", "c/d.py": "d\n", "e": "e\n", "g.py": "g\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "third")
    for name in ("a/b.py", "c/d.py", "e", "g.py"):
        (root / name).unlink()
    (root / "a").rmdir()
    (root / "a").write_text("now a file\n")
    (root / "c").rmdir()
    (root / "c").symlink_to("pkg")
    (root / "pkg" / "d.py").write_text("seen through the link\n")
    write(root, {"e/f.py": "f\n"})
    here = Path.cwd()
    os.chdir(root)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind("g.py")
    finally:
        os.chdir(here)
    return root


def detached(root: Path) -> Path:
    start(root)
    git(root, "checkout", "-q", "--detach", "HEAD~1")
    write(root, {"app.py": "detached\n"})
    return root


def stash(root: Path) -> Path:
    start(root)
    for number in range(2):
        write(root, {"app.py": f"stash {number}\n", f"untracked{number}": "u"})
        git(root, "stash", "push", "-q", "-u")
    write(root, {"app.py": "after\n"})
    return root


def packed(root: Path) -> Path:
    start(root)
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    write(root, {"app.py": "packed\n"})
    return root


def submodule(root: Path) -> Path:
    start(root.parent / "library")
    start(root)
    url = str(root.parent / "library")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "vendor/lib")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "vendor/second")
    git(root, "commit", "-qm", "submodules")
    write(root / "vendor/lib", {"app.py": "dirty in the submodule\n", "extra.py": "untracked there\n"})
    git(root / "vendor/second", "commit", "-q", "--allow-empty", "-m", "moved on")
    hook = root.parent / "submodule-hook"
    hook.write_text(f"#!/bin/sh\necho ran >> '{root.parent}/marker'\n")
    hook.chmod(0o755)
    git(root / "vendor/lib", "config", "core.fsmonitor", str(hook))
    return root


def inside_submodule(root: Path) -> Path:
    submodule(root)
    git(root / "vendor/lib", "config", "--unset", "core.fsmonitor")
    return root / "vendor/lib"


def nested_worktree(root: Path) -> Path:
    start(root)
    git(root, "worktree", "add", "-q", "nested/tree", "other")
    write(root / "nested/tree", {"app.py": "changed in the nested worktree\n"})
    start(root / "nested/repo")
    write(root / "nested", {"plain.txt": "beside them\n"})
    return root


def linked_worktree(root: Path) -> Path:
    start(root.parent / "main")
    git(root.parent / "main", "worktree", "add", "-q", str(root), "other")
    write(root, {"app.py": "in the linked worktree\n"})
    return root


def shallow(root: Path) -> Path:
    start(root.parent / "origin")
    git(root.parent, "clone", "-q", "--depth", "1", f"file://{root.parent}/origin", str(root))
    write(root, {"app.py": "shallow\n"})
    return root


def partial_clone(root: Path) -> Path:
    origin = start(root.parent / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(root.parent, "clone", "-q", "--filter=blob:none", f"file://{root.parent}/origin", str(root))
    write(root, {"app.py": "partial\n"})
    return root


def autocrlf(root: Path) -> Path:
    start(root)
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "core.safecrlf", "true")
    (root / "pkg/mod.py").unlink()
    git(root, "checkout", "-q", "--", "pkg/mod.py")
    assert (root / "pkg/mod.py").read_bytes() == b"two = 2\r\n"
    write(root, {"app.py": b"one = 1\r\nthree = 4\r\n", "mixed.py": b"a\nb\r\n"})
    return root


def conflict(root: Path) -> Path:
    start(root)
    git(root, "checkout", "-q", "other")
    write(root, {"app.py": "one = 'other'\n", "pkg/mod.py": "two = 'other'\n"})
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "main")
    write(root, {"app.py": "one = 'main'\n"})
    git(root, "rm", "-q", "pkg/mod.py")
    git(root, "commit", "-qam", "main")
    git(root, "merge", "other", check=False)
    assert git(root, "ls-files", "-u")
    (root / "pkg/mod.py").unlink()
    write(root, {"app.py": "resolved by hand, not added\n"})
    return root


def sparse(root: Path) -> Path:
    start(root)
    write(root, {"far/away.py": "away\n", "near/here.py": "here\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "third")
    git(root, "sparse-checkout", "set", "near")
    assert not (root / "far").exists()
    write(root, {"near/here.py": "changed\n", "near/new.py": "new\n", "far/outside.py": "outside the cone\n"})
    return root


def sparse_index(root: Path) -> Path:
    sparse(root)
    git(root, "sparse-checkout", "reapply", "--sparse-index")
    return root


def flags(root: Path) -> Path:
    start(root)
    git(root, "update-index", "--assume-unchanged", "app.py")
    git(root, "update-index", "--skip-worktree", "pkg/mod.py")
    write(root, {"app.py": "the user said: don't look\n", "pkg/mod.py": "nor here\n", "later.py": "later\n"})
    git(root, "add", "--intent-to-add", "later.py")
    return root


def split_index(root: Path) -> Path:
    start(root)
    git(root, "update-index", "--split-index")
    git(root, "update-index", "--untracked-cache", "--force-untracked-cache", check=False)
    write(root, {"app.py": "split\n"})
    git(root, "add", "app.py")
    return root


def no_index(root: Path) -> Path:
    start(root)
    (root / ".git/index").unlink()
    write(root, {"app.py": "no index\n"})
    return root


def separate_git_dir(root: Path) -> Path:
    start(root, "--separate-git-dir", str(root.parent / "elsewhere.git"))
    write(root, {"app.py": "separate\n"})
    return root


def sha256(root: Path) -> Path:
    start(root, "--object-format=sha256")
    write(root, {"app.py": "sha256\n"})
    return root


def odd_path(root: Path) -> Path:
    root = root.parent / "with space\nand ünicode 'q'"
    start(root)
    write(root, {"app.py": "odd\n"})
    return root


HOOKS = (
    "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "post-merge",
    "pre-auto-gc", "post-index-change", "reference-transaction", "post-rewrite", "applypatch-msg",
    "fsmonitor-watchman", "pre-push", "post-update", "update",
)  # fmt: skip


def programs(root: Path) -> Path:
    """Everything that could make git start a program of the user's or the repository's."""
    start(root)
    write(root, {
        ".gitattributes": "*.py diff=marked\n*.dat filter=marked\n*.bin filter=long=name\n",
        "stored.dat": "as it is stored\n", "same.bin": "the same\n",
    })  # fmt: skip
    git(root, "add", "-A")
    git(root, "commit", "-qm", "attributes")
    hook = root.parent / "hook"
    hook.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{root.parent}/marker'\nexit 1\n")
    hook.chmod(0o755)
    for name in HOOKS:
        (root / ".git/hooks" / name).symlink_to(hook)
    for key in ("core.fsmonitor", "diff.external", "filter.marked.clean", "filter.marked.smudge",
                "filter.long=name.process", "diff.marked.textconv", "diff.marked.command", "gpg.program",
                "core.editor", "core.pager", "credential.helper", "core.askPass"):  # fmt: skip
        git(root, "config", key, str(hook))
    for key in ("commit.gpgSign", "tag.gpgSign", "filter.marked.required", "log.showSignature"):
        git(root, "config", key, "true")
    git(root, "config", "gc.auto", "1")
    git(root, "config", "gc.autoDetach", "false")
    git(root, "config", "diff.noprefix", "true")
    git(root, "config", "color.ui", "always")
    write(root, {"app.py": "programs\n", "stored.dat": "as the user sees it\n", "new.bin": "new"})
    return root


CASES: dict[str, Case] = {
    "clean": Case(clean, {"app.py": b"one = 1\nthree = 3\n"}, dirty=False),
    "dirty": Case(dirty, {"app.py": b"one = 100\n", "pkg/old.py": None}),
    "staged": Case(
        staged,
        {"app.py": b"staged, then changed\n", "fresh.py": b"fresh\n", "gone.py": None, "pkg/old.py": None,
         "pkg/new.py": b"old = 1\n" * 9, "pkg/mod.py": b"two = 2\n", "pkg/secret.pem": None},
        ("pkg/secret.pem",),
    ),
    "untracked": Case(
        untracked,
        {"new/deep/file.py": b"new\n", "line\nbreak.txt": b"newline", NON_UTF8: b"\xe9", "empty": b"",
         "ümläut \"q\" 'x'.txt": "ü".encode(), "dangling": b"/nowhere/at/all", "folder-link": b"pkg",
         "-dash": b"dash", ":(top)magic": b"magic", "*": b"star", "tool": b"#!/bin/sh\n",
         ".env": None, "keys/id_rsa": None, "build/out.o": None, "_version.py": None, "fifo": None},
        (".env", "keys/id_rsa"),
    ),
    "special_over_tracked": Case(
        special_over_tracked,
        {"a": b"now a file\n", "a/b.py": None, "c": b"pkg", "c/d.py": None, "e/f.py": b"f\n", "e": None,
         "pkg/d.py": b"seen through the link\n"},
        ("g.py",),
    ),
    "detached": Case(detached, {"app.py": b"detached\n"}),
    "stash": Case(stash, {"app.py": b"after\n", "untracked0": None}),
    "packed": Case(packed, {"app.py": b"packed\n"}),
    "submodule": Case(submodule, {"app.py": b"one = 1\nthree = 3\n", "vendor/lib/extra.py": None}),
    "inside_submodule": Case(
        inside_submodule, {"app.py": b"dirty in the submodule\n", "extra.py": b"untracked there\n"}
    ),
    "nested_worktree": Case(
        nested_worktree,
        {"nested/plain.txt": b"beside them\n", "nested/tree": None, "nested/repo": None},
        ("nested/repo/", "nested/tree/"),
    ),
    "linked_worktree": Case(linked_worktree, {"app.py": b"in the linked worktree\n"}),
    "shallow": Case(shallow, {"app.py": b"shallow\n"}),
    "partial_clone": Case(partial_clone, {"app.py": b"partial\n", "pkg/mod.py": b"two = 2\n"}),
    "autocrlf": Case(autocrlf, {"app.py": b"one = 1\nthree = 4\n", "pkg/mod.py": b"two = 2\n"}),
    "conflict": Case(conflict, {"app.py": b"resolved by hand, not added\n", "pkg/mod.py": None}),
    "sparse": Case(
        sparse,
        {"near/here.py": b"changed\n", "near/new.py": b"new\n", "far/away.py": b"away\n",
         "far/outside.py": b"outside the cone\n"},
    ),
    "sparse_index": Case(sparse_index, {"far/away.py": b"away\n"}, dirty=True),
    "flags": Case(
        flags, {"app.py": b"one = 1\nthree = 3\n", "pkg/mod.py": b"two = 2\n", "later.py": b"later\n"}
    ),
    "split_index": Case(split_index, {"app.py": b"split\n", "pkg/mod.py": b"two = 2\n"}),
    "no_index": Case(no_index, {"app.py": b"no index\n", "pkg/mod.py": b"two = 2\n"}),
    "separate_git_dir": Case(separate_git_dir, {"app.py": b"separate\n"}),
    "sha256": Case(sha256, {"app.py": b"sha256\n"}),
    "odd_path": Case(odd_path, {"app.py": b"odd\n"}),
    "programs": Case(
        programs,
        {"app.py": b"programs\n", "stored.dat": b"as it is stored\n", "same.bin": b"the same\n",
         "new.bin": None},
        ("new.bin", "stored.dat"),
    ),
}  # fmt: skip
