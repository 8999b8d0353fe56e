"""Renders the Markdown/Jinja files under `prompts/`: the whole of what a model is told, besides the tools."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_ls.errors import UsageError
from agent_ls.resources import shipped

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment(project: Path | None) -> Environment:
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    folders = [str(shipped("prompts"))]
    if project is not None and (project / ".agent-ls" / "prompts").is_dir():
        folders.insert(0, str(project / ".agent-ls" / "prompts"))
    return ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # plain text for models and terminals, not HTML
    )


def render(name: str, /, project: Path | None = None, **values: Any) -> str:
    """The text of prompt `name` with `values` filled in.

    Args:
        name: file name under `prompts/` without `.md`.
        project: a repository whose own `.agent-ls/prompts/` goes first.

    Raises UsageError for an override that is not a valid template or asks for unknown values.
    """
    from jinja2 import TemplateError

    try:
        return _environment(project).get_template(f"{name}.md").render(**values).strip() + "\n"
    except TemplateError as error:
        raise UsageError(
            f"the prompt {name}.md can't be rendered: {error}", "Correct the file, or remove the override."
        ) from error
