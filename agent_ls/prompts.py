"""Renders the Markdown/Jinja files under `prompts/`: the whole of what a model is told, besides the tools."""

from __future__ import annotations

import os
import re
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

    class Loader(FileSystemLoader):
        def get_source(self, environment: Environment, template: str) -> Any:
            found = super().get_source(environment, template)
            if len(folders) == 2 and str(found[1]).startswith(folders[0] + os.sep):
                real = os.path.realpath(str(project))
                if os.path.realpath(str(found[1])) != os.path.normpath(
                    f"{real}/.agent-ls/prompts/{template}"
                ):  # it could show a model any file of this machine
                    raise UsageError(
                        f"the prompt {template} of the repository is a link", "Put the text there itself."
                    )
            return found

    environment = ImmutableSandboxedEnvironment(
        loader=Loader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # plain text for models and terminals, not HTML
    )
    environment.filters["within"] = within
    return environment


def within(text: str, tag: str) -> str:
    """`text` so that it can stand between `<tag>` and `</tag>`: what would end it early is made harmless."""
    return re.sub(rf"<(?=\s*/\s*{re.escape(tag)}\b)", "&lt;", text, flags=re.IGNORECASE)


def render(name: str, /, project: Path | None = None, **values: Any) -> str:
    """The text of prompt `name` with `values` filled in.

    Args:
        name: file name under `prompts/` without `.md`.
        project: a repository whose own `.agent-ls/prompts/` goes first.

    Raises UsageError for an override that is a link, no valid template, or asks for unknown values.
    """
    from jinja2 import TemplateError

    try:
        return _environment(project).get_template(f"{name}.md").render(**values).strip() + "\n"
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
        said = str(error) or type(error).__name__
        raise UsageError(
            f"the prompt {name}.md can't be rendered: {said}", "Correct the file, or remove the override."
        ) from error
