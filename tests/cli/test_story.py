"""What people see, from event files beside the expected lines (`data/story/<case>.jsonl` and `.txt`)."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from agent_ls.cli.live import LiveView
from agent_ls.cli.output import console, visible
from agent_ls.cli.render import next_steps, summary
from agent_ls.cli.story import duration, one_line
from agent_ls.events import Event, read_events

CASES = sorted((Path(__file__).parent / "data" / "story").glob("*.jsonl"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def play(path: Path, stream: io.StringIO, *, quiet: bool = False, verbose: bool = False) -> str:
    with LiveView(stream=stream, quiet=quiet, verbose=verbose) as view:
        for event in read_events(path):
            view.on_event(event)
    report = view.story.report
    assert report is not None
    summary(report, console(stream), dirty=bool(report.get("dirty")), quiet=quiet)
    return stream.getvalue()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_plain_lines(path: Path) -> None:
    shown = play(path, io.StringIO())
    assert shown == path.with_suffix(".txt").read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_verbose_tells_at_least_as_much(path: Path) -> None:
    verbose = play(path, io.StringIO(), verbose=True)
    plain = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert len(verbose) >= len(plain)
    assert verbose.splitlines()[-1] == plain.splitlines()[-1]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_quiet_tells_only_the_result(path: Path) -> None:
    quiet = play(path, io.StringIO(), quiet=True).splitlines()
    assert quiet[0].startswith("■ ")
    assert len(quiet) <= 5


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")])
def test_no_control_codes_where_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv(variable, value)
    shown = play(CASES[-1], Terminal())
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_force_color_does_not_turn_a_pipe_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b" not in play(CASES[0], io.StringIO())


def test_a_terminal_gets_colours_and_no_foreign_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    path = next(path for path in CASES if path.stem == "tools_handed_over")
    shown = play(path, Terminal())
    assert "\x1b[32m" in shown  # green: passed
    assert "\x1b[31m" in shown  # red: failed
    assert "\x1b[2J" not in shown  # of the title
    assert "\x1b]0;" not in shown  # of the model's text
    assert "\u202e" not in shown
    assert "[bold]no markup[/bold]" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("a\r\nb\rc", "a\nbc"),
        ("x\u202ey\u200bz", "xyz"),
        ("caf\udce9", "caf?"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_one_line_and_duration() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 200, 10) == "x" * 9 + "…"
    assert [duration(s) for s in (0.04, 59.94, 60, 3599)] == ["0.0s", "59.9s", "1m00s", "59m59s"]


@pytest.mark.parametrize(
    ("report", "dirty", "expected"),
    [
        (
            {"branch": "b", "commit": "c" * 40, "base": "a" * 40, "verdict": "fixed"},
            False,
            ["branch: b  cccccccccc", "  merge:     git merge b", "  discard:   git branch -D b"],
        ),
        (
            {"branch": "it's", "commit": "c" * 40, "base": "a" * 40, "verdict": "budget", "session": "s1"},
            True,
            [
                "branch: it's  cccccccccc",
                "  take over: git diff --binary aaaaaaaaaaaa cccccccccccc | git apply",
                "  discard:   git branch -D 'it'\"'\"'s'",
                "  go on:     agent-ls resume s1",
            ],
        ),
        ({"branch": None, "verdict": "usage", "remedy": "Do it."}, False, ["  to do:     Do it."]),
        ({}, False, []),
    ],
)
def test_next_steps(report: dict[str, object], dirty: bool, expected: list[str]) -> None:
    assert [line.plain for line in next_steps(report, repo=None, dirty=dirty)] == expected


def test_git_commands_name_a_repository_elsewhere() -> None:
    report = {"branch": "b", "commit": "c" * 40, "base": "a" * 40, "verdict": "fixed"}
    steps = [line.plain for line in next_steps(report, repo=Path("/a b"), dirty=False)]
    assert steps[1] == "  merge:     git -C '/a b' merge b"


def test_questions_have_no_answer_without_a_terminal() -> None:
    assert LiveView(stream=io.StringIO()).ask("really?") is None


def test_events_of_other_versions_do_no_harm() -> None:
    view = LiveView(stream=io.StringIO())
    kinds = ["session_started", "test_run", "comparison", "attempt", "guard", "model_reply", "context", "x"]
    for seq, kind in enumerate(kinds):
        for data in ({}, {"run": None}, {"n": [], "text": 3}, {"findings": [{}]}):
            view.on_event(Event(seq, 0.0, kind, data))


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ([], None),
        (["\n", "  \n"], None),
        (["I will ", "look"], "I will look"),
        (["first\n", "sec", "ond\n", "\n"], "second"),
        (["\tdef f(", "x):\n\t\treturn x"], "return x"),
        (["a\x1b[2Jb", "\x1b]0;title\x07c"], "abc"),
        (["x" * 5000], "x" * 2000),
    ],
)
def test_the_last_line_that_a_model_writes(
    pieces: list[str], shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    view = LiveView(stream=Terminal())
    for piece in pieces:
        view.on_text(piece)
    line = view.typed_line()
    assert (line.plain if line is not None else None) == shown
    view.on_event(Event(0, 0.0, "model_reply", {"text": "the whole"}))
    assert view.typed_line() is None


def test_what_a_model_writes_is_seen_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    cases = [(Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)]
    for stream, quiet, seen in cases:
        with LiveView(stream=stream, quiet=quiet) as view:
            view.on_text("a thought about carts")
            if view._live is not None:
                view._live.refresh()
        assert ("\x1b[2ma thought about carts\x1b[0m" in stream.getvalue()) is seen
