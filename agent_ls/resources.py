"""Finds shipped folders (tools, prompts, sample, nvim) from a checkout, an editable install or a wheel."""

from __future__ import annotations

from pathlib import Path

_CHECKOUT = {"tools": "tools", "prompts": "prompts", "sample": "examples/sample", "nvim": "editors/nvim"}


def shipped(name: str) -> Path:
    """The folder `name`. Raises FileNotFoundError when the installation is incomplete."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parent / _CHECKOUT[name]):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"agent-ls is installed without its {name!r} folder; reinstall it")
