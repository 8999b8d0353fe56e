"""Model backends behind one protocol (`agent_ls.models.protocol`). `create` makes one from its name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from agent_ls.errors import UsageError
from agent_ls.models.protocol import Backend
from agent_ls.settings import Settings

__all__ = ["create"]

_FORMS = ("anthropic:<model>", "openai:<model>", "local:<name or file.gguf>", "replay:<file>", "repair")


def create(settings: Settings, *, model: str | None = None) -> Backend:
    """The backend for `model` (default: `settings.model`). Nothing is loaded or sent yet.

    Raises UsageError: unknown name, `repair` (which is no model), no key, local model not installed.
    """
    name = model or settings.model
    kind, _, rest = name.partition(":")
    if not rest or kind not in ("anthropic", "openai", "local", "replay"):
        raise _unknown(name, kind)
    if kind == "local":
        return _local(settings, name, rest)
    if kind == "replay":
        from agent_ls.models.replay import ReplayBackend

        return ReplayBackend(Path(rest).expanduser(), window=settings.context_window)
    if kind == "anthropic":
        from agent_ls.models import anthropic

        return anthropic.AnthropicBackend(
            name,
            settings.api_key or os.environ.get(anthropic.KEY),
            base_url=settings.base_url,
            window=settings.context_window,
        )
    from agent_ls.models import openai

    return openai.OpenAIBackend(
        name,
        settings.api_key or os.environ.get(openai.KEY),
        base_url=settings.base_url,
        window=settings.context_window,
    )


def _local(settings: Settings, name: str, rest: str) -> Backend:
    from agent_ls.models import catalog
    from agent_ls.models.local import LocalBackend

    if rest.endswith(".gguf"):
        file = Path(rest).expanduser()
        if not file.is_file():
            raise UsageError(f"{name}: there is no file {file}")
        return LocalBackend(name, file, window=settings.context_window, tools=True, threads=settings.threads)
    known, installed = catalog.find(rest), catalog.installed_file(rest)
    return LocalBackend(
        name, installed, window=settings.context_window, tools=known.tools, threads=settings.threads
    )


def _unknown(name: str, kind: str) -> UsageError:
    if name == "repair":
        return UsageError("repair is the built-in engine, not a model", f"Models: {', '.join(_FORMS[:-1])}.")
    by_kind = {form.partition(":")[0]: form for form in _FORMS}
    near = [by_kind[key] for key in difflib.get_close_matches(kind, by_kind, n=2)] or list(_FORMS)
    return UsageError(f"no model is called {name!r}", f"Valid names: {', '.join(near)}.")
