"""A session's events as the updates that clients get: `agent-ls/run/didUpdate` (docs/protocol.md).

Pure: no protocol objects, no clock. Kinds are those of the Agent Client Protocol where it has one, else
`test_result`, `guard` and `state`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from agent_ls.events import Event

Update = dict[str, Any]
"""One update: "kind" and that kind's fields, JSON throughout."""

_MOST_TESTS = 200
_MOST_TEXT = 8000
_TOOL_KINDS = {
    "search": "search",
    "symbols": "search",
    "refs": "search",
    "locate": "search",
    "read": "read",
    "edit": "edit",
    "run_tests": "execute",
    "finish": "other",
    "ask_human": "other",
}
_STAGES = {
    "baseline": "baseline",
    "baseline-again": "baseline, once more",
    "asked": "asked tests",
    "affected": "affected tests",
    "full": "full suite",
}


@define
class Teller:
    """Reads one run's events in order. `line` is what happens now, for a person; `percent` how far it is,
    where that is known."""

    line: str = "starting"
    percent: int | None = None
    _asked: int = 0

    def read(self, event: Event) -> list[Update]:
        """The updates that one event makes (none for what no client shows). An event of another version that
        lacks fields makes none."""
        teller = _TELLERS.get(event.kind)
        if teller is None:
            return []
        try:
            updates: list[Update] = teller(self, event.data)
            return updates
        except (KeyError, TypeError, ValueError, AttributeError):
            return []

    def _state(self, message: str, **more: Any) -> list[Update]:
        self.line = message
        return [{"kind": "state", "state": "running", "message": message, **more}]

    def _session_started(self, data: Mapping[str, Any]) -> list[Update]:
        return self._state(
            str(data["task"]["title"]),
            session=data["id"],
            branch=data["branch"],
            base=data["base"],
            model=data["model"],
            dirty=bool(data.get("dirty")),
        )

    def _phase(self, data: Mapping[str, Any]) -> list[Update]:
        self.percent = None
        return self._state(data["text"]) if isinstance(data["text"], str) else []

    def _note(self, data: Mapping[str, Any]) -> list[Update]:
        if data["level"] != "warning":
            return []
        return [{"kind": "state", "state": "running", "message": self.line, "warning": str(data["text"])}]

    def _repair_progress(self, data: Mapping[str, Any]) -> list[Update]:
        tried, total = int(data["tried"]), int(data.get("total") or 0)
        of = f" of {total:,}" if total else ""
        said = f"tried {tried:,}{of} candidate edits"
        return self._state(said) if said != self.line and tried else []

    def _test_run(self, data: Mapping[str, Any]) -> list[Update]:
        run = data["run"]
        tests = run.get("tests") or []
        counts = dict.fromkeys(("passed", "failed", "errors", "skipped"), 0)
        for test in tests:
            counts[_CLASS.get(str(test["outcome"]), "passed")] += 1
        stage = str(data["stage"])
        failing = [test for test in tests if test["outcome"] in ("failed", "error")]
        said = counts_line(counts)
        if run["outcome"] == "env_broken":
            said = f"the tests can't be run: {run.get('problem') or ''}"
        self.line = f"{_STAGES.get(stage, stage)}: {said}"
        return [
            {
                "kind": "test_result",
                "stage": stage,
                "outcome": run["outcome"],
                "counts": counts,
                "failing": [_failure(test) for test in failing[:_MOST_TESTS]],
                "durationMs": round(1000 * float(run.get("duration_s") or 0)),
                "message": self.line,
            }
        ]

    def _comparison(self, data: Mapping[str, Any]) -> list[Update]:
        self._asked = len(data["fixed"]) + len(data["still_failing"])
        return []

    def _attempt(self, data: Mapping[str, Any]) -> list[Update]:
        taught = str(data.get("taught") or "")
        self.line = f"attempt {data['n']}: {taught or data['label']}"
        return [
            {
                "kind": "tool_call",
                "toolCallId": f"attempt-{data['n']}",
                "title": f"attempt {data['n']}: {data['label']}",
                "toolKind": "edit",
                "status": "completed",
                "diff": str(data.get("diff") or "")[:200_000],
                "content": taught,
            }
        ]

    def _progress(self, data: Mapping[str, Any]) -> list[Update]:
        fixed = f"{data['best_fixed']} of {data['asked']} fixed" if data["asked"] else self.line
        return self._state(fixed, failuresInARow=data["failures_in_a_row"])

    def _model_call(self, data: Mapping[str, Any]) -> list[Update]:
        return self._state(f"waiting for the model (call {data['n']})")

    def _model_retry(self, data: Mapping[str, Any]) -> list[Update]:
        return self._state(f"the model: {data['reason']}; trying again in {float(data['wait_s']):.0f} s")

    def _model_reply(self, data: Mapping[str, Any]) -> list[Update]:
        usage = data.get("usage") or {}
        updates: list[Update] = []
        if data.get("text"):
            text = str(data["text"])[:_MOST_TEXT]
            updates.append({"kind": "agent_message_chunk", "text": text, "final": True})
        if usage:
            updates.append({"kind": "usage_update", "usage": dict(usage)})
        return updates

    def _usage(self, data: Mapping[str, Any]) -> list[Update]:
        return [{"kind": "usage_update", "usage": dict(data), "total": True}]

    def _tool_call(self, data: Mapping[str, Any]) -> list[Update]:
        name = str(data["name"])
        arguments = data.get("arguments") or {}
        self.line = f"{name} {_about(arguments)}".strip()
        return [
            {
                "kind": "tool_call",
                "toolCallId": str(data["id"]),
                "title": self.line,
                "toolKind": _TOOL_KINDS.get(name, "other"),
                "status": "in_progress",
                "arguments": arguments,
            }
        ]

    def _observation(self, data: Mapping[str, Any]) -> list[Update]:
        return [
            {
                "kind": "tool_call_update",
                "toolCallId": str(data["id"]),
                "status": "failed" if data.get("is_error") else "completed",
                "content": str(data.get("text") or "")[:_MOST_TEXT],
            }
        ]

    def _guard(self, data: Mapping[str, Any]) -> list[Update]:
        return [{"kind": "guard", "findings": list(data["findings"])}]

    def _session_resumed(self, data: Mapping[str, Any]) -> list[Update]:
        return self._state("going on from the best state so far", resumed=data["of"])


def counts_line(counts: Mapping[str, int]) -> str:
    """214 passed, 3 failed, 1 error: only what there is."""
    shown = [
        f"{number:,} {'error' if name == 'errors' and number == 1 else name}"
        for name, number in counts.items()
        if number
    ]
    return ", ".join(shown) or "no test ran"


def finished(report: Mapping[str, Any]) -> Update:
    """The last update of a run, from its report."""
    return {
        "kind": "state",
        "state": "finished",
        "message": _ENDS.get(str(report["verdict"]), str(report["verdict"])),
        "verdict": report["verdict"],
        "exitCode": report["exit_code"],
        "stopReason": report.get("stop_reason"),
        "summary": report.get("summary") or "",
        "session": report.get("session"),
        "branch": report.get("branch"),
        "base": report.get("base"),
        "commit": report.get("commit"),
        "filesChanged": list(report.get("files_changed") or ()),
    }


_ENDS = {
    "fixed": "fixed: the asked tests pass and nothing that passed before fails",
    "handed_over": "handed over: no fix that the tests prove",
    "budget": "stopped: a limit was reached",
    "blocked": "blocked: the change weakened tests or broke a rule",
    "env_broken": "the tests can't be run here, so no code was changed",
    "provider_error": "the model can't be reached or refuses",
    "cancelled": "cancelled",
    "usage": "not started",
    "error": "a fault of agent-ls",
}

_CLASS = {"failed": "failed", "error": "errors", "skipped": "skipped"}


def _failure(test: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": test["id"],
        "outcome": test["outcome"],
        "file": test.get("file"),
        "line": test.get("line"),
        "message": str(test.get("message") or "")[:_MOST_TEXT],
        "stack": list(test.get("stack") or ()),
    }


def _about(arguments: Mapping[str, Any]) -> str:
    """What a call is about, short."""
    for key in ("path", "query", "name", "question"):
        if isinstance(arguments.get(key), str):
            return " ".join(str(arguments[key]).split())[:100]
    edits = arguments.get("edits")
    if isinstance(edits, Sequence):
        paths = dict.fromkeys(
            str(edit["path"]) for edit in edits if isinstance(edit, dict) and "path" in edit
        )
        return ", ".join(paths)[:100]
    return ""


_TELLERS = {
    name.removeprefix("_"): function
    for name, function in vars(Teller).items()
    if name.startswith("_") and not name.startswith("__") and callable(function) and name != "_state"
}
