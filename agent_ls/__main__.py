"""Entry point of `agent-ls` and `python -m agent_ls`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def _leave_the_project_out() -> None:
    """Drop the current folder and PYTHONPATH from our own module search.

    Both may name the repository under repair: its `click` or `jinja2` would run as part of us, unasked
    and outside the sandbox. The tests still get the variable. The folder that holds us stays.
    """
    home = Path(__file__).resolve().parent.parent
    unwanted = {Path(part).resolve() for part in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    unwanted.add(Path.cwd())
    sys.path[:] = [part for part in sys.path if Path(part).resolve() not in unwanted - {home}]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: `sys.argv[1:]`) and return the process's exit code."""
    _leave_the_project_out()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:  # felt at every start of an editor: not even click is needed
        from agent_ls import __version__

        print(f"agent-ls {__version__}")
        return 0
    from agent_ls.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
