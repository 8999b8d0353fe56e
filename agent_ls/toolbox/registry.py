"""The tools of a session: which there are, and how a call is checked, run and answered."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent_ls.errors import ToolRefused
from agent_ls.models.protocol import ToolCall, ToolSchema
from agent_ls.settings import Permission
from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.toolbox.contracts import PERMISSIONS, Contract, contracts_for
from agent_ls.toolbox.schema import argument_problems

_REVEALED = frozenset({"edit", "search"})
"""Tools whose arguments quote the files: placeholders become the secrets again. What they answer is masked
like everything that goes into a prompt."""

Run = Callable[[ToolContext, Mapping[str, Any]], ToolOutput]


def load_tools(permission: Permission, project_dir: Path | None) -> Toolbox:
    """The tools of a session with this permission; `project_dir` is the repository whose
    `.agent-ls/tools/*.md` may reword them. Raises UsageError for a bad file there."""
    return Toolbox(permission, contracts_for(project_dir))


@frozen
class Toolbox:
    """Contracts by name, and the session's permission."""

    permission: Permission
    contracts: Mapping[str, Contract]

    def allowed(self, name: str) -> bool:
        """Does the session's permission cover this tool?"""
        needed = self.contracts[name].permission
        return PERMISSIONS.index(needed) <= PERMISSIONS.index(self.permission)

    def schemas(self) -> list[ToolSchema]:
        """The tools that the session may use, as the model is told about them."""
        return [
            ToolSchema(contract.name, contract.description, contract.parameters)
            for contract in self.contracts.values()
            if self.allowed(contract.name)
        ]

    def run(self, ctx: ToolContext, call: ToolCall) -> ToolOutput:
        """Carry a call out. Whatever is wrong with the call becomes an error for the model to read; of
        the errors on purpose only those that end a session are raised (Cancelled, EnvBroken, …)."""
        contract = self.contracts.get(call.name)
        if contract is None:
            return _error(f"there is no tool {call.name[:60]!r}; {self._known(call.name)}")
        if not self.allowed(call.name):
            reason = f"it needs the permission {contract.permission!r}; this session has {self.permission!r}"
            ctx.denied(call.name, reason)
            return _error(f"{call.name} was not run: {reason}")
        problems = argument_problems(contract.parameters, call.arguments)
        if problems:
            return _error(f"{call.name} was not run: " + "; ".join(problems[:10]))
        given = {name: value for name, value in call.arguments.items() if value is not None}
        if call.name in _REVEALED:
            given = ctx.mask.restore_all(given)
            unknown = ctx.mask.left(given) if call.name == "edit" else []
            if unknown:
                return _error(
                    f"edit was not run: {', '.join(unknown[:5])} stands for a secret that is in no file of "
                    "the repository, so it is not written into one. Read it from the environment or settings."
                )
        try:
            output = runner(call.name)(ctx, given)
        except ToolRefused as error:
            output = _error(str(error))
        except OSError as error:
            # The message without the path: it would show where the worktree lies.
            output = _error(f"{call.name} failed: {error.strerror or type(error).__name__}")
        # Masked before it is cut: half a secret has no shape any more.
        return evolve(output, text=cap(ctx.mask.hide(output.text), contract.output_cap, contract.more))

    def _known(self, name: str) -> str:
        names = [schema.name for schema in self.schemas()]
        close = difflib.get_close_matches(name, names, 1)
        return f"did you mean {close[0]}?" if close else f"the tools are {', '.join(names)}"


def runner(name: str) -> Run:
    """The code of a tool."""
    run: Run = import_module(f"agent_ls.toolbox.{name}").run
    return run


def _error(text: str) -> ToolOutput:
    return ToolOutput(text, is_error=True)


def cap(text: str, limit: int, more: str) -> str:
    """`text` in at most about `limit` characters: its head and tail, cut at line ends where they are near,
    and between them a note on what was left out and how to get it."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[len(text) - limit // 3 :]
    if "\n" in head[-200:]:
        head = head[: head.rindex("\n")]
    if "\n" in tail[:200]:
        tail = tail[tail.index("\n") + 1 :]
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.strip("\n").count("\n") + 1
    return f"{head}\n[… {lines} lines ({len(gone)} characters) left out here. {more}]\n{tail}"
