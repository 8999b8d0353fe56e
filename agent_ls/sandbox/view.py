"""What a confined process sees and may use, and what every sandbox can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, Unpack

from attrs import field, frozen

from agent_ls.sandbox._limits import ResourceLimits
from agent_ls.sandbox.process import ProcessResult, Running, Supervision

SandboxName = Literal["bwrap", "landlock", "off"]


@frozen
class View:
    """What a confined process sees.

    `worktree` (the agent's copy, writable) appears at the path of `repo` (the user's checkout) where the
    sandbox can mount; `scratch` is writable and private to the session; `readonly` are paths below `repo`
    that the worktree lacks and the tests need (ignored ones such as `.venv`); `visible` are paths that must
    stay readable although the home directory is hidden (an interpreter's prefix). With `protect`, what the
    process writes into the worktree is visible to it and gone when it ends (an overlay, where the system
    can make one): tests that delete or rewrite files can't harm the agent's work.
    """

    worktree: Path
    repo: Path
    scratch: Path
    readonly: tuple[Path, ...] = ()
    network: bool = False
    visible: tuple[Path, ...] = ()
    protect: bool = False
    limits: ResourceLimits = field(factory=ResourceLimits)


class Sandbox(Protocol):
    """Runs argv lists over a view; get one from `confine.choose`.

    `mounts` says whether the worktree is seen at the repository's own path: where it is not, an absolute
    path or an editable install leads to the user's checkout.
    """

    @property
    def name(self) -> SandboxName: ...

    @property
    def mounts(self) -> bool: ...

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        **watched: Unpack[Supervision],
    ) -> ProcessResult:
        """Run to the end (see `process.run`). `cwd` is a host path in the worktree (default: its root)."""

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        **watched: Unpack[Supervision],
    ) -> Running:
        """Start and supervise in the background (see `process.start`). Raises OSError."""

    def inside(self, view: View, path: Path) -> Path:
        """The path at which a confined process sees the host path `path`."""

    def outside(self, view: View, path: Path) -> Path:
        """The host path of what a confined process calls `path`."""

    def in_force(self, view: View | None = None) -> list[str]:
        """What this sandbox does and what it can't do here, one sentence each, for people."""
