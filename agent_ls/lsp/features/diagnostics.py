"""Publishing problems, and explaining them where the mouse rests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types

from agent_ls.lsp.documents import Document, path_of, uri_of
from agent_ls.lsp.features.previews import described
from agent_ls.lsp.positions import Lines
from agent_ls.lsp.problems import Problem, Problems, of_finding, of_test
from agent_ls.lsp.protocol import answer
from agent_ls.lsp.runs import Run
from agent_ls.lsp.server import Server
from agent_ls.lsp.updates import Update

_REFRESH_S = 10.0
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


class Diagnostics:
    """Keeps the problems and sends what changed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.problems = Problems()
        self.outcomes: dict[tuple[Path, str], str] = {}
        """Last outcome of each test: (repository root, id) -> outcome."""
        server.on_changed.append(self._changed)
        server.on_update.append(self._update)
        server.on_applied.append(self._applied)

    def tests_ran(self, root: Path, tests: Iterable[Mapping[str, Any]], *, whole: bool) -> None:
        """Results of a run on the user's own files. `whole`: what is not in it does not fail."""
        tests = list(tests)
        failing = [it for it in tests if it["outcome"] in ("failed", "error")]
        found = [problem for it in failing if (problem := of_test(root, it)) is not None]
        if whole:
            self.outcomes = {key: value for key, value in self.outcomes.items() if key[0] != root}
            touched = self.problems.replace("tests", root, found)
        else:
            touched = self.problems.forget_tests(root, [str(it["id"]) for it in tests])
            touched |= self.problems.add(found)
        seen: set[str] = set()
        for it in tests:  # of a test's parameter sets the worst one counts
            name = str(it["id"]).partition("[")[0]
            if name not in seen or self.outcomes[root, name] not in ("failed", "error"):
                self.outcomes[root, name] = str(it["outcome"])
            seen.add(name)
        self.publish(touched)
        self._refresh_lenses()

    def _refresh_lenses(self) -> None:
        """Have the client ask for the lenses again, as they show the outcomes."""
        workspace = self._server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self._server.spawn(answer(self._server.workspace_code_lens_refresh_async(None), _REFRESH_S))

    def reviewed(self, root: Path, findings: Iterable[Mapping[str, Any]], run: str | None = None) -> None:
        """What the guard says of the user's own files."""
        self.publish(self.problems.replace("guard", root, [of_finding(root, it, run) for it in findings]))

    def publish(self, paths: Iterable[Path]) -> None:
        """Send the diagnostics of these files as they are now."""
        for path in paths:
            document = self._server.documents.at(path)
            lines = document.lines if document is not None else _lines(path)
            shown = [self._diagnostic(problem, lines) for problem in self.problems.at(path)]
            self._server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(
                    document.uri if document is not None else uri_of(path),
                    shown,
                    document.version if document is not None else None,
                )
            )

    def _diagnostic(self, problem: Problem, lines: Lines) -> types.Diagnostic:
        encoding = self._server.documents.encoding
        line = min(problem.line, max(1, len(lines))) - 1
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(
                    uri_of(other.path),
                    types.Range(types.Position(other.line - 1, 0), types.Position(other.line - 1, 0)),
                ),
                other.message,
            )
            for other in problem.related
        ]
        suffix = " (the text has changed since)" if problem.stale else ""
        severity = types.DiagnosticSeverity.Hint if problem.stale else _SEVERITIES[problem.severity]
        return types.Diagnostic(
            range=lines.whole(line, encoding),
            message=problem.message + suffix,
            severity=severity,
            code=problem.code,
            code_description=described(self._server, problem.code),
            source="agent-ls",
            related_information=related or None,
            data={**(problem.data or {}), "stale": problem.stale},
        )

    def _changed(self, document: Document) -> None:
        if document.path is not None and self.problems.changed(document.path):
            self.publish([document.path])

    def _update(self, run: Run, update: Update) -> None:
        """A session's baseline says of the user's files what a run of them would."""
        if update["kind"] == "test_result" and update["stage"] == "baseline" and run.root is not None:
            self.tests_ran(run.root, update["failing"], whole=True)

    def _applied(self, run: Run) -> None:
        """The user's files are what the session proved, so what it fixed fails no more."""
        if run.root is not None and run.report is not None and run.report["verdict"] == "fixed":
            fixed = [{"id": name, "outcome": "passed"} for name in run.report["tests"]["fixed"]]
            self.tests_ran(run.root, fixed, whole=False)


def _lines(path: Path) -> Lines:
    try:
        return Lines(path.read_text("utf-8", "replace")) if path.stat().st_size < 2_000_000 else Lines("")
    except OSError:
        return Lines("")


def register(server: Server, diagnostics: Diagnostics) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        path = path_of(params.text_document.uri)
        if path is None:
            return None
        here = [it for it in diagnostics.problems.at(path) if it.line - 1 == params.position.line]
        if not here:
            return None
        texts = [f"**{it.code}** {it.message}\n\n{_explained(it)}" for it in here]
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(texts)))


def _explained(problem: Problem) -> str:
    if problem.source == "guard":
        return problem.explanation
    return f"```\n{problem.explanation[:4000]}\n```"
