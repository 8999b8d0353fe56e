"""Final summaries and tables for people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from agent_ls.cli.output import visible
from agent_ls.cli.story import (
    BAD,
    DIM,
    GOOD,
    NAME,
    WARN,
    counts_text,
    duration,
    finding_text,
    ids_text,
    one_line,
    plural,
)

if TYPE_CHECKING:
    from rich.console import Console

_MAX_DIFF_LINES = 400
_BLOB_IDS = re.compile(r"index [0-9a-f]{7,}\.\.[0-9a-f]{7,}( [0-7]{6})?$")
_BANNERS: dict[str, tuple[str, str]] = {
    "fixed": (GOOD, "fixed: the asked tests pass and nothing that passed before fails"),
    "error": (BAD, "error: a fault of agent-ls itself"),
    "usage": (BAD, "not started"),
    "handed_over": (WARN, "handed over: no fix that the tests prove"),
    "budget": (WARN, "stopped: a limit was reached"),
    "blocked": (BAD, "blocked: the change weakened tests or broke a rule"),
    "env_broken": (BAD, "the tests can't be run here, so no code was changed"),
    "provider_error": (BAD, "the model can't be reached or refuses"),
    "cancelled": (WARN, "cancelled"),
}


def summary(
    report: Mapping[str, Any], console: Console, *, repo: Path | None = None, dirty: bool = False,
    quiet: bool = False,
) -> None:  # fmt: skip
    """Print what a session achieved: verdict, what was done, diff, tests, branch, cost.

    `report` is the contract's document; `dirty` says that the session began with uncommitted changes.
    """
    verdict = str(report.get("verdict"))
    style, banner = _BANNERS.get(verdict, (WARN, verdict))
    if not quiet:
        console.print()
        if report.get("diff"):
            console.print(diff(str(report["diff"]), fancy=console.is_terminal))
            console.print()
    console.print(Text("■ " + banner, f"bold {style}"))
    if not quiet:
        _what(report, console)
        _tests(report.get("tests") or {}, console)
        for finding in (report.get("guard") or {}).get("findings", ()):
            console.print(finding_text(finding))
    for line in next_steps(report, repo=repo, dirty=dirty):
        console.print(line, soft_wrap=True)
    cost = cost_line(report)
    if cost and not quiet:
        console.print(Text(cost, DIM))


def _what(report: Mapping[str, Any], console: Console) -> None:
    text = visible(str(report.get("summary") or report.get("error") or "")).strip()
    if not text:
        return
    if console.is_terminal:
        from rich.markdown import Markdown
        from rich.padding import Padding

        console.print(Padding(Markdown(text, hyperlinks=False, code_theme="ansi_dark"), (1, 0, 1, 2)))
    else:
        console.print(Text(text))
        console.print()


def _tests(tests: Mapping[str, Any], console: Console) -> None:
    before, after = tests.get("baseline"), tests.get("final")
    if before:
        line = Text.assemble(("tests: ", NAME), counts_text(before))
        if after:
            line.append(" → ").append_text(counts_text(after))
        console.print(line)
    for key, style, mark in (
        ("fixed", GOOD, "✓"),
        ("regressed", BAD, "✗"),
        ("still_failing", BAD, "✗"),
        ("flaky", WARN, "~"),
        ("pre_existing", DIM, "·"),
        ("added", GOOD, "+"),
    ):
        ids = tests.get(key) or []
        if ids:
            label = "failing before, and not asked for" if key == "pre_existing" else key.replace("_", " ")
            console.print(Text(f"  {label}:", style))
            for line in ids_text(ids, style, mark=mark):
                console.print(line, soft_wrap=True)


def diff(text: str, *, fancy: bool) -> RenderableType:
    """A unified diff, coloured on a terminal, cut when it is very long."""
    lines = [line for line in visible(text).split("\n") if not _BLOB_IDS.match(line)]
    while lines and not lines[-1]:
        lines.pop()
    note = None
    if len(lines) > _MAX_DIFF_LINES:
        note = Text(f"… {len(lines) - _MAX_DIFF_LINES:,} more lines; git shows all", DIM)
        lines = lines[:_MAX_DIFF_LINES]
    if fancy:
        from rich.syntax import Syntax

        body: RenderableType = Syntax(
            "\n".join(lines), "diff", theme="ansi_dark", background_color="default", word_wrap=False
        )
    else:
        body = Text("\n".join(lines))
    return Group(body, note) if note is not None else body


def next_steps(report: Mapping[str, Any], *, repo: Path | None, dirty: bool) -> list[Text]:
    """How to take the result over or throw it away."""
    git = "git" if repo is None else f"git -C {shlex.quote(str(repo))}"
    lines: list[Text] = []
    branch, commit, session = report.get("branch"), report.get("commit"), report.get("session")
    if branch and commit:
        name = shlex.quote(visible(str(branch)))
        base = str(report.get("base") or "")
        lines.append(Text.assemble(("branch: ", NAME), visible(str(branch)), (f"  {str(commit)[:10]}", DIM)))
        if dirty:
            lines.append(
                _step("take over", f"{git} diff --binary {base[:12]} {str(commit)[:12]} | {git} apply")
            )
        else:
            lines.append(_step("merge", f"{git} merge {name}"))
        lines.append(_step("discard", f"{git} branch -D {name}"))
    can_help = report.get("resumable", True)  # reports of older sessions do not say
    if (
        session
        and can_help
        and report.get("verdict") in ("handed_over", "budget", "cancelled", "provider_error", "error")
    ):
        lines.append(_step("go on", f"agent-ls resume {session}"))
    if report.get("remedy"):
        lines.append(_step("to do", one_line(str(report["remedy"]), 400)))
    return lines


def _step(word: str, command: str) -> Text:
    return Text.assemble((f"  {word + ':':<11}", DIM), command)


def cost_line(report: Mapping[str, Any]) -> str:
    """Model, calls, tokens, money and time in one line."""
    usage = report.get("usage") or {}
    if not usage:
        return ""
    parts = [one_line(str(usage.get("model")), 60)]
    if usage.get("model_calls"):
        tokens = f"{usage.get('input_tokens', 0):,} in, {usage.get('output_tokens', 0):,} out"
        parts.append(f"{plural(usage['model_calls'], 'model call')}, tokens {tokens}")
        cost = usage.get("cost_usd")
        parts.append("cost unknown" if cost is None else f"${cost:.4f}")
    if usage.get("tool_calls"):
        parts.append(plural(usage["tool_calls"], "tool call"))
    parts.append(duration(float(usage.get("wall_s") or 0.0)))
    if report.get("session"):
        parts.append(f"session {report['session']}")
    return " · ".join(parts)


def table(rows: Sequence[Sequence[str]], heads: Sequence[str], console: Console) -> None:
    """A table without lines; wide cells wrap on a terminal and are never cut in a pipe."""
    if not console.is_terminal:
        widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
        for row in [heads, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            console.print(Text("  ".join(cells).rstrip()), soft_wrap=True)
        return
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        grid.add_column(head, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)
