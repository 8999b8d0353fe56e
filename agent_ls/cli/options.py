"""Options that every command takes, and how they become `Settings`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from agent_ls.errors import UsageError

if TYPE_CHECKING:
    from agent_ls.config import Loaded
    from agent_ls.workspace.git import Repository

Function = TypeVar("Function", bound=Callable[..., Any])

# (flag, key of Settings or Limits, metavar, help). Values stay texts here: config.load checks them all.
_SETTING_OPTIONS = (
    ("--model", "model", "NAME", "repair (default), local:…, anthropic:…, openai:…, replay:FILE."),
    ("--first", "first", "repair", "Let the built-in engine try before the model."),
    ("--strategy", "strategy", "NAME", "auto (default), tools or guided."),
    ("--test-command", "test_command", "COMMAND", "How to run the tests; split into words, no shell."),
    ("--base", "base", "REV|worktree", "Where to start: a revision, or your files as they are now."),
    ("--max-steps", "max_steps", "N", "Stop after N steps."),
    ("--max-failures", "max_failures", "N", "Stop after N verdicts in a row without progress (default 3)."),
    ("--max-tokens", "max_tokens", "N", "Stop after N tokens, input and output together."),
    ("--max-cost", "max_cost", "USD", "Stop after this much money."),
    ("--timeout", "timeout", "SECONDS", "Stop after this much time."),
    ("--permission", "permission", "LEVEL", "read, test, refactor or fix (default)."),
    ("--candidates", "candidates", "N", "How many solutions to try and compare."),
)
LIMITS = ("max_steps", "max_failures", "max_tokens", "max_cost", "timeout")
_SETTING_KEYS = {key for _, key, _, _ in _SETTING_OPTIONS}


def common(function: Function) -> Function:
    """Decorator: add the common options to a command, gathered by `Context.of`."""
    return _with_options(function, frozenset(_SETTING_KEYS | {"no_sandbox"}))


def common_reading(function: Function) -> Function:
    """As `common`, for a command that runs no task: the options of tasks are accepted there (a script may
    give them to all), but its help leaves them out."""
    return _with_options(function, frozenset())


def common_testing(function: Function) -> Function:
    """As `common_reading`, for a command that runs tests but no model."""
    return _with_options(function, frozenset({"test_command", "base", "timeout", "no_sandbox"}))


def _with_options(function: Function, shown: frozenset[str]) -> Function:
    options = [
        click.option(
            "--repo", metavar="DIR", help="The repository (default: the one around this directory)."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout."),
        *(
            click.option(flag, key, metavar=meta, help=text, hidden=key not in shown)
            for flag, key, meta, text in _SETTING_OPTIONS
        ),
        click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Any other setting."),
        click.option(
            "--no-sandbox",
            is_flag=True,
            help="Run the tests without a sandbox.",
            hidden="no_sandbox" not in shown,
        ),
        click.option("--quiet", "-q", is_flag=True, help="Only the result."),
        click.option("--verbose", "-v", is_flag=True, help="More detail, and tracebacks."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@frozen
class Context:
    """What the common options say. `overrides` is the command line's layer for `config.load`."""

    repo: Path
    as_json: bool
    quiet: bool
    verbose: bool
    overrides: dict[str, Any]

    @classmethod
    def of(cls, given: dict[str, Any]) -> Context:
        """Take the common options out of `given` (a command's keyword arguments).

        Options before the command's name count as well; those behind it win. Raises UsageError.
        """
        parent = click.get_current_context().parent
        before = dict(parent.params) if parent is not None else {}
        merged: dict[str, Any] = {}
        for name in ("repo", "as_json", "no_sandbox", "quiet", "verbose", *_SETTING_KEYS):
            value = given.pop(name, None)
            merged[name] = value if value not in (None, False) else before.get(name)
        overrides = {key: merged[key] for key in _SETTING_KEYS if merged[key] is not None}
        for pair in (*before.get("pairs", ()), *given.pop("pairs", ())):
            key, equals, value = pair.partition("=")
            if not equals or not key:
                raise UsageError(f"--set takes KEY=VALUE, not {pair!r}", "For example: --set samples=4")
            overrides[key.strip()] = value
        if merged["no_sandbox"]:
            overrides["sandbox"] = "off"
        if merged["repo"] is not None and not merged["repo"]:
            raise UsageError("--repo is empty", "Name a directory.")
        return cls(
            repo=Path(merged["repo"] or "."),
            as_json=bool(merged["as_json"]),
            quiet=bool(merged["quiet"]),
            verbose=bool(merged["verbose"]),
            overrides=overrides,
        )

    def repository(self) -> Repository:
        """The repository around `repo`. Raises UsageError when there is none that can be worked in."""
        from agent_ls.workspace.git import Repository

        if not self.repo.is_dir():
            raise UsageError(f"{self.repo} is not a directory", "Name a repository with --repo DIR.")
        return Repository.discover(self.repo)

    def tree(self) -> Path:
        """The root of the repository around `repo`; a folder outside any repository stands for itself. For
        commands that only read. Raises UsageError."""
        from agent_ls.workspace.index.scan import git_output, plain_root

        if (root := plain_root(self.repo)) is not None:
            return root
        if self.repo.is_dir() and git_output(self.repo, "rev-parse", "--git-dir") is None:
            return self.repo
        return self.repository().root

    def load(self, root: Path | None) -> Loaded:
        """The settings in force for the repository at `root`. Raises UsageError."""
        from agent_ls.config import load

        return load(root, self.overrides)
