"""Running tests and the guard on the user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import asdict

from agent_ls.errors import UsageError
from agent_ls.lsp.features.diagnostics import Diagnostics
from agent_ls.lsp.features.streaming import Streams
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.protocol import WORK_DONE_TOKEN
from agent_ls.lsp.runs import Run
from agent_ls.lsp.server import Server
from agent_ls.lsp.unsaved import unsaved
from agent_ls.lsp.updates import counts_line

if TYPE_CHECKING:
    from agent_ls.testing.results import TestResult


class TestReport:
    """How a run of tests ended, in the shape of a session's report."""

    __test__ = False

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def to_json(self) -> dict[str, Any]:
        return self.data


async def run_tests(
    server: Server, streams: Streams, diagnostics: Diagnostics, folder: Folder, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Run tests on a copy of the files as the editor shows them: `{ids?, folder?}`. Answers `{runId}` at
    once; each result is a `test_result` update of stage `tests`."""
    ids = arguments.get("ids") or []
    if not isinstance(ids, list) or not all(isinstance(it, str) and it for it in ids):
        raise UsageError("ids are a list of test ids", "Leave them out for the whole suite.")
    documents = list(server.documents)

    def work(run: Run) -> TestReport:
        from agent_ls.agent.api import run_tests as run_suite

        repo = folder.repository()
        run.root = repo.root

        def on_result(test: TestResult) -> None:
            run.teller.line = f"{test.outcome}: {test.id}"
            run.tell({"kind": "test_result", "stage": "tests", "tests": [asdict(test)]})

        done = run_suite(
            repo.root, ids, folder.settings({}), cancel=run.cancel, on_result=on_result,
            buffers=unsaved(documents, repo.root),
        )  # fmt: skip
        counts = done.counts()
        tests = [asdict(test) for test in done.tests]
        server.soon(lambda: diagnostics.tests_ran(repo.root, tests, whole=not ids))
        verdict = {"passed": "passed", "env_broken": "env_broken"}.get(done.outcome, "failed")
        said = counts_line(counts)
        if done.outcome == "env_broken":
            said = f"the tests can't be run: {done.problem}. {done.remedy or ''}"
        return TestReport(
            {
                "verdict": verdict,
                "exit_code": {"passed": 0, "env_broken": 6}.get(verdict, 9),
                "summary": said,
                "tests": {"counts": counts, "command": list(done.command), "truncated": done.truncated},
            }
        )

    title = ids[0] if len(ids) == 1 else f"{len(ids)} tests" if ids else "all tests"
    run = streams.runs.start("tests", f"Run {title}", folder, None, work)
    streams.begin_progress(run, WORK_DONE_TOKEN.get())
    return {"runId": run.id}


async def review_change(
    server: Server, diagnostics: Diagnostics, folder: Folder, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """What the change from `{base}` to `{head}` (default: the files on the disk) did to the tests. Findings
    about the files on the disk are shown as diagnostics too."""
    base, head = arguments.get("base", "HEAD"), arguments.get("head")
    if not isinstance(base, str) or not (head is None or isinstance(head, str)):
        raise UsageError("base and head are revisions", "For example main.")
    root, findings = await server.work(_review, folder, base, head)
    if head is None:
        diagnostics.reviewed(root, findings)
    return {"schema": 1, "findings": findings}


def _review(folder: Folder, base: str, head: str | None) -> tuple[Any, list[dict[str, Any]]]:
    from agent_ls.guard.review import review
    from agent_ls.guard.trees import GitTree, WorktreeTree

    repo = folder.repository()
    before = GitTree(repo, repo.tree_of(repo.resolve(base)))
    after = WorktreeTree(repo) if head is None else GitTree(repo, repo.tree_of(repo.resolve(head)))
    return repo.root, [finding.to_json() for finding in review(before, after)]
