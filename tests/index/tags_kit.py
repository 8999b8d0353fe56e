"""Tags as readable text, as the expected files beside the sources have them.

`python tests/index/tags_kit.py` writes these files anew; read the difference before it is committed.
"""

from __future__ import annotations

from pathlib import Path

from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.records import FileTags
from agent_ls.workspace.index.tags import tags

CASES = Path(__file__).parent / "data" / "tags"


def sources() -> list[Path]:
    return sorted(path for path in CASES.glob("*/*") if path.suffix != ".txt")


def rendered(found: FileTags) -> str:
    """One line per definition and import, one per line of source for its references."""
    lines = ["broken"] if found.broken else []
    for it in found.definitions:
        place = f"{it.line}-{it.end_line} {it.name_line}:{it.column}"
        lines.append(
            f"{place} {it.kind} {it.qualified} | {it.signature}" + (f" | {it.doc}" if it.doc else "")
        )
    lines += [f"{it.line} import {it.module} {' '.join(it.names)}".rstrip() for it in found.imports]
    rows: dict[int, list[str]] = {}
    for it in found.references:
        assert it.end_column == it.column + len(it.name)
        rows.setdefault(it.line, []).append(f"{it.kind} {it.name}:{it.column}")
    lines += [f"{line} uses {', '.join(uses)}" for line, uses in rows.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for source in sources():
        text = rendered(tags(language_of(source.name) or "", source.read_bytes()))
        source.with_suffix(".txt").write_text(text, "utf-8")
