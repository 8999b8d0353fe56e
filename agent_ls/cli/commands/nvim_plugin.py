"""`agent-ls nvim-plugin`: the Lua file for Neovim."""

from __future__ import annotations

import sys

import click


@click.command("nvim-plugin", epilog="agent-ls nvim-plugin > ~/.config/nvim/plugin/agent-ls.lua")
def nvim_plugin() -> int:
    """Print the plugin for Neovim, to be saved where Neovim finds it."""
    from agent_ls.resources import shipped

    sys.stdout.write((shipped("nvim") / "agent-ls.lua").read_text("utf-8"))
    return 0
