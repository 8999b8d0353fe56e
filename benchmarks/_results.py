"""Rows on disk, totals over them, and the table that people read."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from _common import BenchmarkError, Row


class Results:
    """Rows by name in one JSON file, rewritten after each row: a killed run loses only what it was at."""

    def __init__(self, path: Path | None, head: Row, *, resume: bool) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        self.head = head
        self._lock = threading.Lock()
        if resume:
            if path is None:
                raise BenchmarkError("--resume needs --out FILE")
            if path.exists():
                old = json.loads(path.read_text("utf-8"))
                if old.get("settings") != head.get("settings"):
                    raise BenchmarkError(f"{path} was made with other settings: use another --out")
                self.rows = old["results"]

    def add(self, name: str, row: Row, totals: Callable[[Iterable[Row]], Row]) -> None:
        with self._lock:
            self.rows[name] = row
            if self.path is not None:
                document = {
                    "schema": 1,
                    **self.head,
                    "totals": totals(self.rows.values()),
                    "results": self.rows,
                }
                self.path.parent.mkdir(parents=True, exist_ok=True)
                half = self.path.with_name(self.path.name + ".part")
                half.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
                half.replace(self.path)


def quantile(values: Sequence[float], share: float) -> float | None:
    """The nearest-rank quantile: the smallest value that `share` of them don't exceed; None for none."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def usage_totals(rows: Iterable[Row], won: Callable[[Row], bool]) -> Row:
    """Tokens and seconds summed over `rows`; `per_won` divides all spent, losses too, by the tasks won."""
    rows = list(rows)
    wins = sum(1 for row in rows if won(row))
    tokens = sum(row.get("input_tokens", 0) + row.get("output_tokens", 0) for row in rows)
    walls = [row["wall_s"] for row in rows if "wall_s" in row]
    return {
        "tasks": len(rows),
        "won": wins,
        "tokens": tokens,
        "tokens_per_won": round(tokens / wins) if wins else None,
        "model_calls": sum(row.get("model_calls", 0) for row in rows),
        "wall_median_s": quantile(walls, 0.5),
        "wall_p90_s": quantile(walls, 0.9),
        "wall_total_s": round(sum(walls), 1),
    }


def table_row(cells: Sequence[object], widths: Sequence[int]) -> str:
    """One line of a Markdown table, padded; a negative width aligns to the right."""
    parts = [
        str(cell).rjust(-width) if width < 0 else str(cell).ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return "| " + " | ".join(parts) + " |"


def table_head(names: Sequence[str], widths: Sequence[int]) -> str:
    rule = [("-" * (-w - 1) + ":") if w < 0 else "-" * w for w in widths]
    return table_row(names, widths) + "\n" + table_row(rule, widths)
