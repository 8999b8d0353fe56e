"""Entry point of `agent-ls` and `python -m agent_ls`.

Until the project is left out of the module search, nothing is imported but what Python has loaded by itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _leave_the_project_out() -> None:
    """Drop the current folder and PYTHONPATH from our own module search.

    Both may name the repository under repair: its `click` or `jinja2` would run as part of us, unasked
    and outside the sandbox. The tests still get the variable. The folder that holds us stays.
    """
    home = _real(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
    unwanted = {_real(part) for part in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    sys.path[:] = [part for part in sys.path if _real(part) == home or _real(part) not in unwanted]


def _speak_utf8() -> None:
    """Start again in UTF-8 mode where the locale says something else: git and the files' names don't care
    about it, and Python would not find a path that it can't encode."""
    if sys.getfilesystemencoding().lower() != "utf-8" and not sys.flags.utf8_mode and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _real(part: str) -> str:
    """The folder that an entry of the module search names; the entry itself if the current folder is gone."""
    try:
        return os.path.realpath(part)
    except OSError:
        return part


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: `sys.argv[1:]`) and return the process's exit code."""
    _leave_the_project_out()
    if argv is None:
        _speak_utf8()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:  # felt at every start of an editor: not even click is needed
        from agent_ls import __version__

        print(f"agent-ls {__version__}")
        return 0
    try:
        from agent_ls.cli.app import run

        code = run(arguments)
        if argv is None:
            _leave_llama_behind(code)
    except KeyboardInterrupt:  # while modules were loaded, or after all was done
        sys.stderr.write("cancelled\n")
        code = 130
    if argv is None:  # all is said: a Ctrl-C now must not change the exit code
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def _leave_llama_behind(code: int) -> None:
    """End the process at once where llama.cpp is still computing: it can't be stopped in the middle of a
    batch, nobody waits for its answer, and a torn-down interpreter would crash under it."""
    local = sys.modules.get("agent_ls.models.local")
    if local is not None and local.busy():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # nobody reads it any more
                pass
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
