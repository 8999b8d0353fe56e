"""The settings in force: one flat, typed record, filled by `config.load`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen

Permission = Literal["read", "test", "refactor", "fix"]


@frozen
class Limits:
    """Where a session must stop. None means no limit. `max_tokens` counts input and output together.

    What counts as spinning (`agent.progress`): `max_failures` verdicts in a row without progress;
    `max_same_failures` with the same tests failing with the same errors; `max_growth` with a larger diff each
    time (both None: as `max_failures`); `max_idle_edits` edits in a row of nothing but comments and blank
    lines; `max_returns` returns to a state that was tested before; `max_alternations` changes from one of two
    places to the other; `max_repeats` equal calls with equal answers.
    """

    max_steps: int | None = 100
    max_failures: int = 3
    max_same_failures: int | None = None
    max_growth: int | None = None
    max_idle_edits: int = 2
    max_returns: int = 1
    max_alternations: int = 3
    max_repeats: int = 3
    max_tokens: int | None = 400_000
    max_cost: float | None = 2.0
    timeout: float | None = 1800.0


@frozen
class Settings:
    """Every option a user can set, after all layers were merged.

    `test_command` is an argv list; `test_timeout` bounds one run of it and `per_test_timeout` one
    test (seconds, None: from the baseline or off). `sandbox` is "auto", "bwrap", "landlock" or
    "off"; the other `test_…` numbers bound what a run may use (`sandbox._limits.ResourceLimits`); `tests`
    says what a session may do to the test files ("add" becomes "edit" where the task itself is about tests);
    `guard_timeout` bounds the runs that compare edited tests with the old ones (seconds); `include` names
    files that go into the prompt.
    `threads` are those of a local model (None: the physical cores, fewer when the machine is loaded).
    """

    model: str = "repair"
    first: Literal["repair"] | None = None
    strategy: Literal["auto", "tools", "guided"] = "auto"
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    context_window: int | None = None
    threads: int | None = None
    temperature: float | None = None
    samples: int = 8
    test_command: tuple[str, ...] | None = None
    interpreter: str | None = None
    test_timeout: float = 600.0
    per_test_timeout: float | None = None
    base: str | None = None
    branch: str | None = None
    permission: Permission = "fix"
    candidates: int = 1
    sandbox: Literal["auto", "bwrap", "landlock", "off"] = "auto"
    test_memory_mb: int | None = None
    test_processes: int = 4096
    test_file_mb: int = 2048
    test_disk_mb: int = 8192
    test_cpu_s: int | None = None
    network: bool = False
    tests: Literal["none", "add", "edit"] = "add"
    guard_timeout: float = 120.0
    include: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    seed: int = 0
    limits: Limits = field(factory=Limits)


def state_dir() -> Path:
    """Where sessions live (`AGENT_LS_STATE_DIR` moves it). Not created here."""
    import os

    import platformdirs

    override = os.environ.get("AGENT_LS_STATE_DIR")
    return Path(override) if override else Path(platformdirs.user_state_dir("agent-ls", appauthor=False))


def cache_dir() -> Path:
    """Where models and indexes live (`AGENT_LS_CACHE_DIR` moves it). Not created here."""
    import os

    import platformdirs

    override = os.environ.get("AGENT_LS_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("agent-ls", appauthor=False))
