"""`agent-ls mcp`: our tools on standard input and output. They edit nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_ls import __version__
from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, UsageError

if TYPE_CHECKING:
    from mcp.server import MCPServer

_LINES = 200


def serve(root: Path, overrides: Mapping[str, Any]) -> int:
    """Serve one client for the repository at `root` until it goes; `overrides` are settings of the command
    line. Raises UsageError when the extra is not installed."""
    import asyncio

    try:
        import mcp  # noqa: F401  (only to say what is missing)
    except ImportError as error:
        raise UsageError(
            "the Model Context Protocol is not installed", "pip install 'agent-ls[mcp]'"
        ) from error
    from agent_ls.workspace.index.live import LiveIndex

    with LiveIndex(root) as index:
        server = make_server(root, overrides, index)
        asyncio.run(server.run_stdio_async())
    os._exit(0)  # a hanging test run must not keep the process


def make_server(root: Path, overrides: Mapping[str, Any], index: Any) -> MCPServer[Any]:
    """The server with its tools. A refusal is an error that the caller sees, with the remedy."""
    import asyncio
    from functools import partial

    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    from agent_ls.workspace.secret_files import mask_for

    server: MCPServer[Any] = MCPServer(
        "agent-ls", version=__version__, log_level="ERROR",
        instructions=f"Reads the repository {root}, runs its tests in a sandbox, and edits nothing.",
    )  # fmt: skip
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    def answer(function: Any, arguments: Sequence[Any], cancel: CancelToken) -> dict[str, Any]:
        """It goes into another agent's prompt: no secrets in it."""
        hidden: dict[str, Any] = mask_for(root, root).hide_all(function(*arguments, cancel=cancel))
        return hidden

    async def call(function: Any, *arguments: Any) -> dict[str, Any]:
        cancel = CancelToken()
        try:
            return await asyncio.to_thread(partial(answer, function, arguments, cancel))
        except asyncio.CancelledError:
            cancel.cancel()
            raise
        except AgentLsError as error:
            raise ToolError(f"{error.message}. {error.remedy or ''}".strip()) from error

    @server.tool(annotations=reading)
    async def search(
        query: str, regex: bool = False, word: bool = False, glob: str = "", limit: int = 50
    ) -> dict[str, Any]:
        """Search text in the repository: definitions first, then uses, then comments."""
        return await call(_search, root, index, query, regex, word, glob, limit)

    @server.tool(annotations=reading)
    async def symbols(name: str, limit: int = 50) -> dict[str, Any]:
        """Find where a name is defined, with its signature."""
        return await call(_symbols, index, name, limit)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    async def run_tests(ids: list[str] | None = None) -> dict[str, Any]:
        """Run tests (all, or those with these ids) on a copy of the files, in a sandbox. Failures have their
        message and stack."""
        return await call(_run_tests, root, overrides, ids or [])

    @server.tool(annotations=reading)
    async def locate(tests: list[str] | None = None, limit: int = 20) -> dict[str, Any]:
        """Rank the lines most likely at fault for failing tests, by their coverage and stacks."""
        return await call(_locate, root, overrides, tests or [], limit)

    @server.tool(annotations=reading)
    async def guard(base: str = "HEAD", head: str = "") -> dict[str, Any]:
        """Say what the change from `base` to `head` (default: the files on the disk) did to the tests:
        weakened assertions, skipped or deleted tests, changed configuration."""
        return await call(_guard, root, base, head)

    return server


def _search(
    root: Path, index: Any, query: str, regex: bool, word: bool, glob: str, limit: int, *, cancel: CancelToken
) -> dict[str, Any]:
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.search import search

    if not query:
        raise UsageError("the query is empty", "Give a text to look for.")
    found = index.ask(
        lambda view: search(
            Workspace(root, cancel), query, regex=regex, word=word, globs=[glob] if glob else [],
            limit=_limited(limit), view=view,
        )
    )  # fmt: skip
    hits = [
        {"path": it.path, "line": it.line, "column": it.column, "text": it.text[:300]} for it in found.hits
    ]
    return {"hits": hits, "complete": found.complete}


def _symbols(index: Any, name: str, limit: int, *, cancel: CancelToken) -> dict[str, Any]:
    from agent_ls.workspace.index.similar import find_definitions

    matches = index.ask(lambda view: find_definitions(view, name, limit=_limited(limit)))
    rows = [
        {
            "name": it.definition.qualified,
            "kind": it.definition.kind,
            "path": it.path,
            "line": it.definition.line,
            "end_line": it.definition.end_line,
            "signature": it.definition.signature,
        }
        for it in matches.found
    ]
    return {"symbols": rows, "match": str(matches.how), "complete": matches.complete}


def _run_tests(
    root: Path, overrides: Mapping[str, Any], ids: list[str], *, cancel: CancelToken
) -> dict[str, Any]:
    from attrs import asdict

    from agent_ls.agent.api import run_tests
    from agent_ls.config import load

    run = run_tests(root, ids, load(root, overrides).settings, cancel=cancel)
    failing = [asdict(test) for test in run.tests if test.outcome.bad][:_LINES]
    return {
        "outcome": run.outcome,
        "counts": run.counts(),
        "failing": failing,
        "problem": run.problem,
        "remedy": run.remedy,
        "truncated": run.truncated,
    }


def _locate(
    root: Path, overrides: Mapping[str, Any], tests: list[str], limit: int, *, cancel: CancelToken
) -> dict[str, Any]:
    from agent_ls.agent.api import locate
    from agent_ls.config import load

    suspects = locate(root, tests, load(root, overrides).settings, cancel=cancel)
    rows = [
        {"path": it.path, "line": it.line, "function": it.function, "score": it.score}
        for it in list(suspects)[: _limited(limit)]
    ]
    return {"suspects": rows}


def _guard(root: Path, base: str, head: str, *, cancel: CancelToken) -> dict[str, Any]:
    from agent_ls.guard.review import review
    from agent_ls.guard.trees import GitTree, WorktreeTree
    from agent_ls.workspace.git import Repository

    repo = Repository.discover(root)
    before = GitTree(repo, repo.tree_of(repo.resolve(base)))
    after = GitTree(repo, repo.tree_of(repo.resolve(head))) if head else WorktreeTree(repo)
    return {"findings": [finding.to_json() for finding in review(before, after)]}


def _limited(limit: int) -> int:
    return min(max(limit, 1), _LINES)
