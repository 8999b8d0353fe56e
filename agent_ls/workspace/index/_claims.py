"""What a live index has yet to take in."""

from __future__ import annotations

from attrs import define, field

from agent_ls.workspace.index.watch import Changes


@define
class Claims:
    """Changed paths, or everything, and buffers. `nudged`: the watcher has more."""

    paths: set[str] = field(factory=set)
    everything: str | None = None
    switched: bool = False
    rules: bool = False
    buffers: set[str] = field(factory=set)
    nudged: bool = False

    def __bool__(self) -> bool:
        return bool(self.buffers) or self.files

    @property
    def files(self) -> bool:
        """Is there anything besides buffers?"""
        return bool(self.paths or self.nudged) or self.everything is not None

    def add(self, changes: Changes) -> None:
        """Files that have changed."""
        self.paths |= changes.paths
        self.everything = self.everything or changes.everything
        self.switched = self.switched or changes.switched
        self.rules = self.rules or changes.rules

    def again(self, other: Claims) -> None:
        """What could not be taken in."""
        self.paths |= other.paths
        self.everything = self.everything or other.everything
        self.switched = self.switched or other.switched
        self.rules = self.rules or other.rules
        self.buffers |= other.buffers
