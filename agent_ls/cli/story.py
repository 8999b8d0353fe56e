"""Turns events into lines that a person understands. Pure: no terminal, no clock of its own.

Colours mean something: green fixed or passing, red failing, yellow flaky or a warning, dim detail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field
from rich.text import Text

from agent_ls.cli.output import visible
from agent_ls.events import Event

GOOD, BAD, WARN, DIM, NAME = "green", "red", "yellow", "dim", "bold"
_MAX_IDS = 5
_MAX_REPLY_LINES = 8
_STAGES = {
    "baseline-again": "baseline",
    "asked": "asked tests",
    "affected": "affected tests",
    "full": "full suite",
}


def one_line(text: str, limit: int = 100) -> str:
    """The text on one line, made harmless, cut with an ellipsis."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """4.1s, 83s as 1m23s."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    return f"{int(seconds // 60)}m{int(seconds % 60):02}s"


def counts_text(counts: Mapping[str, int]) -> Text:
    """214 passed, 3 failed, 1 error, 2 skipped: only what there is, each in its colour."""
    text = Text()
    for key, word, style in (
        ("passed", "passed", GOOD),
        ("failed", "failed", BAD),
        ("errors", "errors", BAD),
        ("skipped", "skipped", WARN),
    ):
        number = counts.get(key, 0)
        if number or (key == "passed" and not any(counts.values())):
            text.append(", " if text.plain else "")
            text.append(f"{number:,} {'error' if word == 'errors' and number == 1 else word}", style)
    return text


def count_tests(tests: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Counts of a test run's plain data, in the report's four classes."""
    counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
    for test in tests:
        outcome = str(test.get("outcome"))
        key = {"failed": "failed", "error": "errors", "skipped": "skipped"}.get(outcome, "passed")
        counts[key] += 1
    return counts


def _main_argument(arguments: Mapping[str, Any]) -> str:
    """What a tool call is about: the value that a person would name first."""
    for key in ("path", "query", "pattern", "name", "ids", "tests", "question", "summary"):
        value = arguments.get(key)
        if value:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    edits = arguments.get("edits")
    if isinstance(edits, list):
        paths = dict.fromkeys(
            str(edit["path"]) for edit in edits if isinstance(edit, dict) and "path" in edit
        )
        return ", ".join(paths)
    return ""


def ids_text(ids: Sequence[str], style: str, indent: str = "    ", mark: str = "·") -> list[Text]:
    """One line for each of the first ids, and how many more there are."""
    lines = [Text(f"{indent}{mark} {one_line(name, 160)}", style) for name in ids[:_MAX_IDS]]
    if len(ids) > _MAX_IDS:
        lines.append(Text(f"{indent}… and {len(ids) - _MAX_IDS:,} more", DIM))
    return lines


@define
class Story:
    """Reads one session's events in order. `status` is what happens now, `since` when it began (epoch)."""

    verbose: bool = False
    status: str = "starting"
    detail: str = ""
    since: float = 0.0
    calls: int = 0
    tokens: int = 0
    started: Mapping[str, Any] = field(factory=dict)
    report: Mapping[str, Any] | None = None
    _last_comparison: tuple[int, int] = (-1, -1)
    _searched: str = ""

    def read(self, event: Event) -> list[Text]:
        """Take in one event; the lines that it adds to the record (none for mere progress).

        Events of an unknown kind or with missing fields give nothing: files of other versions stay readable.
        """
        teller = _TELLERS.get(event.kind)
        if teller is None:
            return []
        if not self.since:
            self.since = event.time
        before: list[Text] = []
        if self._searched and event.kind != "repair_progress":
            before = [Text(f"  searched: {self._searched}", DIM)]
            self._searched = ""
        try:
            return [*before, *teller(self, event.data, event)]
        except (KeyError, TypeError, ValueError, AttributeError):
            return before

    # -- one method per kind ------------------------------------------------------------------

    def _session_started(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        self.started = data
        self.since = event.time
        task = data["task"]
        number = f"issue {task['number']}: " if task.get("number") is not None else ""
        lines = [Text.assemble((number, NAME), (one_line(task["title"], 140), NAME))]
        lines.append(
            Text(
                f"{data['model']} · branch {one_line(data['branch'])} · from {str(data['base'])[:10]}"
                + (" with your uncommitted changes" if data.get("dirty") else "")
                + (f" · sandbox {data['sandbox']}" if data.get("sandbox") else ""),
                DIM,
            )
        )
        return lines

    def _session_resumed(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        return [Text("resumed", NAME)]

    def _note(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if data["level"] == "warning":
            return [Text.assemble(("! ", WARN), (one_line(data["text"], 400), WARN))]
        return [Text("  " + one_line(data["text"], 240), DIM)] if self.verbose else []

    def _quick_tests(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if data["state"] == "fallback":
            reason = one_line(data["reason"], 240)
            return [Text(f"  every test run takes a fresh process from here: {reason}", DIM)]
        return [Text(f"  warm test process {data['state']}: {data['reason']}", DIM)] if self.verbose else []

    def _phase(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        self.status, self.detail, self.since = one_line(data["text"]), "", event.time
        return []

    def _test_run(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        run = data["run"]
        stage = str(data["stage"])
        if stage == "baseline-again" and not self.verbose:
            return []
        name = _STAGES.get(stage, stage)
        took = duration(float(run.get("duration_s") or 0.0))
        if run["outcome"] == "env_broken":
            return [
                Text.assemble((f"{name}: ", NAME), ("the tests can't be run: ", BAD)).append(
                    one_line(run.get("problem") or "", 300), BAD
                )
            ]
        tests = run.get("tests") or []
        line = Text.assemble((f"{name}: ", NAME), counts_text(run.get("counts") or count_tests(tests)))
        line.append("  " + took, DIM)
        if run["outcome"] == "timeout":
            line.append("  stopped at the deadline", WARN)
        elif run.get("truncated"):
            line.append("  ended early", WARN)
        if stage != "baseline":
            return [line]
        failing = [test["id"] for test in tests if test["outcome"] in ("failed", "error")]
        return [line, *ids_text(failing, BAD)]

    def _comparison(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        fixed, still, broken = data["fixed"], data["still_failing"], data["regressed"]
        numbers = (len(fixed), len(still))
        if numbers == self._last_comparison and not broken and not data.get("flaky") and not self.verbose:
            return []
        self._last_comparison = numbers
        line = Text("  ")
        line.append(f"{len(fixed)} of {len(fixed) + len(still)} fixed", GOOD if fixed else DIM)
        if broken:
            line.append(f", {len(broken)} regressed", BAD)
        if data.get("flaky"):
            line.append(f", {len(data['flaky'])} flaky", WARN)
        if data.get("missing"):
            line.append(f", {len(data['missing'])} missing", WARN)
        return [line, *ids_text(broken, BAD, mark="✗")] if broken or self.verbose else [line]

    def _context(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if not self.verbose:
            return []
        kept = sum(int(section["tokens"]) for section in data["kept"])
        line = f"  prompt: {kept:,} of {int(data['window']):,} tokens"
        if data["dropped"]:
            line += "; left out: " + ", ".join(str(section["section"]) for section in data["dropped"])
        return [Text(one_line(line, 200), DIM)]

    def _model_call(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        self.calls += 1
        self.status, self.since = f"waiting for the model (call {self.calls})", event.time
        self.detail = ""
        return []

    def _model_reply(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        usage = data.get("usage") or {}
        self.tokens += int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))
        text = visible(str(data.get("text") or "")).strip()
        shown = text.splitlines()
        limit = len(shown) if self.verbose else _MAX_REPLY_LINES
        lines = [Text("  " + one_line(line, 160) if line.strip() else "", DIM) for line in shown[:limit]]
        if len(shown) > limit:
            lines.append(Text(f"  … {len(shown) - limit} more lines", DIM))
        for call in data.get("malformed") or ():
            error = one_line(str(call.get("error", "")), 160)
            lines.append(Text(f"! malformed call of {one_line(str(call.get('name')), 40)}: {error}", WARN))
        return lines

    def _model_retry(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        reason = one_line(str(data["reason"]), 160)
        return [Text(f"! model: {reason}; trying again in {float(data['wait_s']):.0f} s", WARN)]

    def _tool_call(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        name = one_line(str(data["name"]), 40)
        self.status, self.since = f"tool {name}", event.time
        line = Text.assemble(("  → ", DIM), name)
        first = _main_argument(data.get("arguments") or {})
        return [line.append(f" {one_line(first, 100)}", DIM) if first else line]

    def _observation(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if not data.get("is_error"):
            return []
        return [Text("    " + one_line(str(data.get("text", "")), 160), BAD)]

    def _attempt(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        line = Text.assemble((f"attempt {data['n']}: ", NAME), one_line(str(data["label"]), 160))
        lines = [line]
        self._last_comparison = (-1, -1)
        if data.get("taught"):
            lines.append(Text("  " + one_line(str(data["taught"]), 200), DIM))
        return lines

    def _repair_progress(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        total = f" of {int(data['total']):,}" if data.get("total") else ""
        self.detail = f"{int(data['tried']):,}{total} candidates, {float(data['per_second']):.0f}/s"
        self._searched = self.detail
        if data.get("best"):
            self.detail += f", best so far {one_line(str(data['best']), 60)}"
        return []

    def _progress(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if data["made"] or not data.get("reason"):
            return []
        count = f" ({data['failures_in_a_row']} in a row)" if data.get("failures_in_a_row") else ""
        return [Text(f"  no progress{count}: {one_line(str(data['reason']), 160)}", DIM)]

    def _question(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        return [Text("? " + one_line(str(data["text"]), 600), NAME)]

    def _answer(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        return [Text("  " + ("no answer" if data["text"] is None else one_line(str(data["text"]), 300)), DIM)]

    def _guard(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        styles = {"block": BAD, "review": WARN, "info": DIM}
        return [finding_text(found, styles) for found in data["findings"]]

    def _behaviour(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        lines = self._guard(data, event)
        equal = len(data["equal"])
        text = f"  edited tests run against the old ones ({data['layer']}): {equal} as strong as they were"
        lines.append(Text(f"{text}, {int(data['mutants'])} mutants", DIM))
        if self.verbose:
            lines += [
                Text(f"    not checked: {one_line(part['what'], 80)}: {one_line(part['why'], 120)}", DIM)
                for part in data["not_checked"]
            ]
        return lines

    def _put_back(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        return [Text(f"  put back as it was: {one_line(', '.join(data['paths']), 200)}", WARN)]

    def _contradiction(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        if data["problems"]:
            return [Text(f"  contradiction not accepted: {one_line(data['problems'][0], 200)}", WARN)]
        tests = ", ".join(claim["test"] for claim in data["claims"])
        return [Text(f"  says that tests contradict the task: {one_line(tests, 200)}", WARN)]

    def _session_finished(self, data: Mapping[str, Any], event: Event) -> list[Text]:
        self.report = data.get("report") or data
        return []


def finding_text(finding: Mapping[str, Any], styles: Mapping[str, str] | None = None) -> Text:
    """One line for a guard finding."""
    styles = styles or {"block": BAD, "review": WARN, "info": DIM}
    severity = str(finding["severity"])
    place = (
        f"{finding.get('path')}:{finding.get('line')}" if finding.get("line") else str(finding.get("path"))
    )
    text = f"{severity}: {place}: {finding.get('message') or finding.get('kind')}"
    return Text("! " + one_line(text, 240), styles.get(severity, WARN))


_Teller = Callable[[Story, Mapping[str, Any], Event], list[Text]]
_TELLERS: dict[str, _Teller] = {
    name.removeprefix("_"): teller
    for name, teller in vars(Story).items()
    if name.startswith("_") and not name.startswith("__") and callable(teller)
}
