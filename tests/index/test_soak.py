"""Whatever happens to a tree and to buffers, in any order: the live index says what a new one says.

AGENT_LS_SOAK_STEPS and AGENT_LS_SOAK_SEED ask for more, or for other, steps.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_kit import assert_fresh, make_repository

from agent_ls.workspace.index.buffers import Edit
from agent_ls.workspace.index.live import LiveIndex
from agent_ls.workspace.index.watch import Mode

STEPS = int(os.environ.get("AGENT_LS_SOAK_STEPS", "200"))
SEED = int(os.environ.get("AGENT_LS_SOAK_SEED", "20251"))

SNIPPETS = {
    ".py": (
        "def {0}(a):\n    return {1}(a)\n",
        "class {0}:\n    def {1}(self): ...\n",
        "import {0}\n{1} = 1\n",
        "if (:\n",
    ),
    ".ts": ("export function {0}() {{ return {1}() }}\n", "class {0} {{ {1}() {{}} }}\r\n"),
    ".go": ("package p\nfunc {0}() int {{ return {1}() }}\n",),
    ".cpp": ("class EXPORT {0} {{ void {1}(); }};\n", "int {0}() {{ return {1}(); }}\n"),
    ".txt": ("{0} and {1} – ünïcode 😀\n", "{0}\r\n"),
    ".log": ("{0}\n",),
}


class World:
    """Random steps; each is a method that leaves the tree somehow."""

    def __init__(self, root: Path, live: LiveIndex, seed: int) -> None:
        self.root = root
        self.live = live
        self.random = random.Random(seed)
        self.branches = 0
        self.log: list[str] = []

    # what there is

    def files(self) -> list[Path]:
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name != ".git")
            found += [Path(folder, name) for name in sorted(names) if name != ".gitignore"]
        return found

    def folders(self) -> list[Path]:
        return [
            Path(folder)
            for folder, folders, _ in os.walk(self.root)
            if ".git" not in Path(folder).relative_to(self.root).parts and folders is not None
        ]

    def file(self) -> Path:
        return self.random.choice(self.files() or [self.root / "only.py"])

    def name(self) -> str:
        return self.random.choice("abcdefgh") + self.random.choice(["one", "Two", "ß", "_4"])

    def new_path(self) -> Path:
        folder = self.random.choice(self.folders())
        if self.random.random() < 0.3:
            folder = folder / self.name() / self.random.choice(["", "deep", "build", "node_modules"])
        return folder / (self.name() + self.random.choice(list(SNIPPETS)))

    def text(self, path: Path) -> str:
        snippets = SNIPPETS.get(path.suffix, SNIPPETS[".txt"])
        chosen = self.random.choices(snippets, k=self.random.randrange(5))
        return "".join(snippet.format(self.name(), self.name()) for snippet in chosen)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.root), *arguments], check=False, capture_output=True)

    # steps

    def edit(self) -> None:
        path = self.file()
        self.write(path, self.text(path))

    def append(self) -> None:
        path = self.file()
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(self.text(path))

    def secret_edit(self) -> None:
        """Same size, and the time put back."""
        path = self.file()
        status = path.stat()
        data = bytearray(path.read_bytes())
        if data:
            data[self.random.randrange(len(data))] = self.random.choice(b"xyz_ ")
            path.write_bytes(data)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def atomic_save(self) -> None:
        path = self.file()
        temporary = path.with_name(f".{path.name}.tmp")
        self.write(temporary, self.text(path))
        temporary.replace(path)

    def create(self) -> None:
        path = self.new_path()
        self.write(path, self.text(path))

    def binary(self) -> None:
        path = self.new_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\0\1\2" * 50)

    def delete(self) -> None:
        self.file().unlink()

    def delete_folder(self) -> None:
        folders = self.folders()[1:]
        if len(folders) > 2:
            shutil.rmtree(self.random.choice(folders))

    def rename(self) -> None:
        target = self.new_path()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.file().replace(target)

    def rename_folder(self) -> None:
        folders = self.folders()[1:]
        if folders:
            folder = self.random.choice(folders)
            target = self.root / self.name()
            if not target.exists() and folder not in target.parents:
                folder.rename(target)

    def mass_rename(self) -> None:
        for path in self.files():
            path.rename(path.with_name("m" + path.name))
        for path in self.files()[::2]:
            path.rename(path.with_name(path.name.removeprefix("m")))

    def change_case(self) -> None:
        path = self.file()
        path.rename(path.with_name(path.name.swapcase()))

    def file_to_folder(self) -> None:
        path = self.file()
        path.unlink()
        self.write(path / "inner.py", self.text(path))

    def folder_to_file(self) -> None:
        folders = self.folders()[1:]
        if folders:
            folder = self.random.choice(folders)
            shutil.rmtree(folder)
            self.write(folder, "def was_a_folder(): ...\n")

    def link(self) -> None:
        path = self.new_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.random.choice([self.root, self.file(), self.root / "nowhere"]))

    def replace_by_link(self) -> None:
        path = self.file()
        path.unlink()
        path.symlink_to(self.random.choice([self.file(), path.parent]))

    def touch(self) -> None:
        os.utime(self.file(), follow_symlinks=False)

    def switch(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "more")
        if self.branches < 4 or self.random.random() < 0.2:
            self.branches += 1
            self.git("checkout", "-qb", f"b{self.branches}")
        else:
            self.git("checkout", "-qf", f"b{self.random.randrange(1, self.branches)}")

    def stash(self) -> None:
        self.git("stash", "-u")

    def unstash(self) -> None:
        self.git("stash", "pop")
        self.git("reset", "-q")

    def clean(self) -> None:
        self.git("clean", "-qfdx" if self.random.random() < 0.3 else "-qfd")

    def reset(self) -> None:
        self.git("reset", "-q", "--hard")

    def stage(self) -> None:
        self.git("add", "-f", "--", str(self.file()))

    def ignore(self) -> None:
        lines = self.random.sample(["*.log", "build/", "*.txt", "/aone/", "!*.log", "*one.py"], 3)
        folder = self.random.choice(self.folders())
        self.write(folder / ".gitignore", "\n".join(lines) + "\n")

    def exclude(self) -> None:
        rule = self.random.choice(["", "*.cpp\n", "bTwo*\n"])
        self.write(self.root / ".git" / "info" / "exclude", rule)

    def nested_repository(self) -> None:
        folder = self.root / self.name() / "nested"
        if not folder.parent.exists():
            self.write(folder / "n.py", "nested = 1\n")
            subprocess.run(["git", "init", "-q", str(folder)], check=True)

    def move_away_and_back(self) -> None:
        away = self.root.with_name("away")
        self.root.rename(away)
        if self.random.random() < 0.5:
            self.live.view(timeout=60)
        away.rename(self.root)

    # buffers

    def open_buffer(self) -> None:
        path = self.file() if self.random.random() < 0.8 else self.new_path()
        self.live.open_buffer(path.relative_to(self.root).as_posix(), self.text(path).encode())

    def change_buffer(self) -> None:
        paths = sorted(self.live.buffers.paths())
        if paths:
            path = self.random.choice(paths)
            buffer = self.live.buffers.get(path)
            assert buffer is not None
            start = self.random.randrange(len(buffer.text) + 1)
            end = min(len(buffer.text), start + self.random.choice([0, 0, 1, 5, 40]))
            self.live.change_buffer(path, [Edit(start, end, self.text(Path(path)).encode()[:30])])

    def close_buffer(self) -> None:
        paths = sorted(self.live.buffers.paths())
        if paths:
            self.live.close_buffer(self.random.choice(paths))

    # all

    def steps(self) -> list[Callable[[], None]]:
        often = (self.edit, self.create, self.append, self.change_buffer, self.open_buffer, self.rename)
        return [
            *often, *often, self.secret_edit, self.atomic_save, self.binary, self.delete, self.delete_folder,
            self.rename_folder, self.mass_rename, self.change_case, self.file_to_folder, self.folder_to_file,
            self.link, self.replace_by_link, self.touch, self.switch, self.stash, self.unstash, self.clean,
            self.reset, self.stage, self.ignore, self.exclude, self.nested_repository,
            self.move_away_and_back,
            self.close_buffer, self.close_buffer,
        ]  # fmt: skip

    def step(self) -> None:
        step = self.random.choice(self.steps()) if len(self.files()) > 15 else self.create
        self.log.append(step.__name__)
        try:
            step()
        except (FileNotFoundError, NotADirectoryError, FileExistsError, IsADirectoryError, OSError) as error:
            self.log[-1] += f" ({type(error).__name__})"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")  # watchdog's own, of new folders
@pytest.mark.parametrize(("mode", "share"), [("inotify", 1.0), ("polling", 0.1), ("watchdog", 0.1)])
def test_soak(tmp_path: Path, mode: Mode, share: float) -> None:
    root = make_repository(tmp_path / "repository")
    with LiveIndex(root, cache_dir=tmp_path / "cache", mode=mode) as live:
        world = World(root, live, SEED)
        for number in range(max(40, int(STEPS * share))):
            for _ in range(world.random.choice([1, 1, 1, 3])):
                world.step()
            assert_fresh(live, f"after step {number}: …{world.log[-6:]}")
        assert live.status().watching == mode
        assert live.status().failed is None
    assert len(set(world.log)) > 10
