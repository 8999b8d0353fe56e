"""The lazy command group and the one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from agent_ls import __version__
from agent_ls.cli.options import common
from agent_ls.errors import AgentLsError
from agent_ls.verdict import Verdict

# name -> (module under agent_ls.cli.commands, one line for --help). Modules are imported on demand.
COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "Run the language server (also without any command, when an editor starts it)."),
    "fix": ("fix", "Fix an issue or failing tests on a new branch, and prove it."),
    "demo": ("demo", "Watch a bundled sample repository being fixed."),
    "test": ("tests", "Run the tests and print parsed results."),
    "index": ("index", "Index the repository, and say what the index holds."),
    "guard": ("guard", "Say what a change did to the tests."),
    "search": ("code", "Search text in the repository."),
    "symbols": ("code", "Find definitions by name."),
    "refs": ("code", "Find uses of a name: callers, callees, importers, tests."),
    "map": ("map", "Print the most important files and definitions, within a token budget."),
    "context": ("map", "Rank the files to read for a task, with the reasons why."),
    "locate": ("code", "Rank the code lines most likely at fault for failing tests."),
    "resume": ("sessions", "Go on with a session after a hand-over or a crash."),
    "sessions": ("sessions", "List sessions."),
    "show": ("sessions", "Show what a session did."),
    "clean": ("sessions", "Remove finished sessions."),
    "model": ("model", "List, install or serve local models."),
    "acp": ("others", "Speak the Agent Client Protocol, for an editor's agent panel."),
    "mcp": ("others", "Serve the tools to another agent (Model Context Protocol)."),
    "nvim-plugin": ("nvim_plugin", "Print the plugin for Neovim."),
    "doctor": ("doctor", "Say what was found on this machine, and what to do about what is missing."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"agent_ls.cli.commands.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 fixed, 1 a fault of agent-ls, 2 usage, 3 handed over, 4 budget, 5 blocked,"
    " 6 tests can't be run, 7 model unreachable, 8 to be reviewed (guard), 9 tests failed (test),"
    " 130 cancelled; search: 1 without hits.",
)
@click.version_option(__version__, prog_name="agent-ls", message="%(prog)s %(version)s")
@click.option("--fix-issue", metavar="N", help="The same as: fix --issue N.")
@common
def cli(**_: Any) -> None:
    """A coding agent that works on a branch in a copy of your repository and proves its fix with your
    tests.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        if sys.stdin is None or sys.stdin.isatty():
            click.echo(ctx.get_help())
            return
        from agent_ls.lsp.serve import serve_stdio

        serve_stdio()


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code; prints every error that gets this far."""
    arguments = _with_fix_issue(arguments)
    as_json = "--json" in _before_dashes(arguments)
    try:
        result = cli.main(list(arguments), prog_name="agent-ls", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _usage(error, as_json)
    except AgentLsError as error:
        return _report(error.verdict, error.message, error.remedy, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _report(Verdict.CANCELLED, "cancelled", None, as_json)
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has gone (click turns that into an exit of its own, with a fault's
        # code). Without this Python complains again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except Exception as error:
        if isinstance(error, OSError) and (reason := _no_room(error)):
            return _report(Verdict.ERROR, f"can't write: {reason}", _NO_ROOM_REMEDY, as_json)
        from agent_ls.cli.crash import crash

        verbose = bool({"--verbose", "-v"} & set(_before_dashes(arguments)))
        message, remedy = crash(error, arguments, verbose=verbose)
        return _report(Verdict.ERROR, message, remedy, as_json)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
_NO_ROOM_REMEDY = "Free some space, or move the state (AGENT_LS_STATE_DIR); `agent-ls resume last` goes on."


def _no_room(error: OSError) -> str | None:
    """Why nothing more can be written, if that is what the error says; it may be one of several in a list."""
    number = error.errno or next((n for n in _NO_ROOM if f"[Errno {n}]" in str(error)), None)
    if number not in _NO_ROOM:
        return None
    place = f" ({os.fsdecode(error.filename)})" if error.filename else ""
    return os.strerror(number) + place


def _before_dashes(arguments: Sequence[str]) -> list[str]:
    found = list(arguments)
    return found[: found.index("--")] if "--" in found else found


def _with_fix_issue(arguments: Sequence[str]) -> list[str]:
    """`--fix-issue N` anywhere means `fix --issue N` with all other options; `fix` may be said as well."""
    plain = _before_dashes(arguments)
    if any(word == "--fix-issue" or word.startswith("--fix-issue=") for word in plain):
        renamed = [word.replace("--fix-issue", "--issue", 1) for word in plain]
        if renamed[0] == "fix":
            del renamed[0]
        return ["fix", *renamed, *list(arguments)[len(plain) :]]
    return list(arguments)


def _usage(error: click.ClickException, as_json: bool) -> int:
    remedy = None
    context = getattr(error, "ctx", None)
    if context is not None:
        remedy = f"{context.command_path} --help shows what is possible."
    message = error.format_message().replace("a valid integer range", "a whole number")
    return _report(Verdict.USAGE, message, remedy, as_json)


# Who reads a report finds its fields in an error too, empty.
_EMPTY_REPORT: dict[str, Any] = {
    "session": None,
    "branch": None,
    "base": None,
    "commit": None,
    "diff": "",
    "files_changed": [],
    "tests": None,
    "guard": {"findings": []},
    "usage": None,
    "limits": None,
    "steps": 0,
    "reward": 0.0,
}


def _report(verdict: Verdict, message: str, remedy: str | None, as_json: bool) -> int:
    from agent_ls.cli.output import emit_json, visible

    if as_json:
        emit_json(
            {
                "schema": 1,
                "verdict": str(verdict),
                "exit_code": verdict.exit_code,
                "error": message,
                "remedy": remedy,
                "stop_reason": str(verdict),
                "summary": f"{message}\n\n{remedy}" if remedy else message,
                **_EMPTY_REPORT,
            }
        )
    head = "cancelled" if verdict is Verdict.CANCELLED else f"agent-ls: {visible(message)}"
    try:
        sys.stderr.write(head + "\n" + (f"{visible(remedy)}\n" if remedy else ""))
        sys.stderr.flush()
    except OSError:
        pass
    return verdict.exit_code
