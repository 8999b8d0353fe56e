"""Entry point of `agent-ls` and `python -m agent_ls`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: `sys.argv[1:]`) and return the process's exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:  # felt at every start of an editor: not even click is needed
        from agent_ls import __version__

        print(f"agent-ls {__version__}")
        return 0
    from agent_ls.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
