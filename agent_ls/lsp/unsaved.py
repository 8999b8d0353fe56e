"""What the editor has not saved, as bytes that saving would write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_ls.errors import ToolRefused
from agent_ls.lsp.documents import Document
from agent_ls.workspace.text import TextFile


def unsaved(documents: Iterable[Document], root: Path) -> dict[str, bytes]:
    """Texts of open documents below `root` that differ from their files, by path from there. Reads the
    files: not for the event loop."""
    found: dict[str, bytes] = {}
    for document in documents:
        if document.path is None or not document.path.is_relative_to(root):
            continue
        try:
            old = document.path.read_bytes()
        except OSError:
            continue  # never saved: it is no part of the repository yet
        new = as_saved(document.path, document.text)
        if new != old:
            found[document.path.relative_to(root).as_posix()] = new
    return found


def as_saved(path: Path, text: str) -> bytes:
    """`text` in the file's encoding, with its byte order mark and line ends."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return TextFile.read(path).with_text(plain).to_bytes()
    except (OSError, ToolRefused, ValueError):
        return text.encode("utf-8", "surrogatepass")
