"""Search: ripgrep and our own give the same hits."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, ToolRefused
from agent_ls.workspace import search as search_module
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.search import _parse_ripgrep, search
from agent_ls.workspace.symbols import find_symbols

SHAPE = b"class Shape:\n    def area(self):\n        return AREA\n\n\narea = Shape().area()\n"
RIPGREP = shutil.which("rg")


@pytest.fixture(
    params=["own", pytest.param("rg", marks=pytest.mark.skipif(not RIPGREP, reason="no ripgrep"))]
)
def workspace(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(
        search_module.shutil, "which", lambda _name, path=None: RIPGREP if request.param == "rg" else None
    )
    config = tmp_path / "ripgreprc"
    config.write_text("--files-with-matches\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name, data in {
        "src/shape.py": SHAPE,
        "src/crlf.txt": b"one area\r\ntwo\r\n",
        "src/latin.c": "// Größe area\n".encode("latin-1"),
        "src/wide.txt": "日本 area\n".encode(),
        "src/utf16.txt": "the area\r\n".encode("utf-16"),
        "-x.txt": b"area --pre=sh\n",
        "image.bin": b"area\0\1\2",
        ".hidden": b"area\n",
        "ignored.log": b"area\n",
        ".env": b"area=1\n",
        ".gitignore": b"*.log\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    return Workspace(root)


def places(workspace: Workspace, query: str, **options: Any) -> list[tuple[str, int, int]]:
    result = search(workspace, query, **options)
    assert result.complete
    return [(hit.path, hit.line, hit.column) for hit in result.hits]


def test_hits_are_sorted_and_leave_out_ignored_binary_and_secret_files(workspace: Workspace) -> None:
    assert places(workspace, "area") == [
        ("-x.txt", 1, 1),
        (".hidden", 1, 1),
        ("src/crlf.txt", 1, 5),
        ("src/latin.c", 1, 10),
        ("src/shape.py", 2, 9),
        ("src/shape.py", 3, 16),
        ("src/shape.py", 6, 1),
        ("src/utf16.txt", 1, 5),
        ("src/wide.txt", 1, 4),
    ]


@pytest.mark.parametrize(
    ("query", "options", "found"),
    [
        ("AREA", {}, [3]),
        ("area", {"case": "sensitive"}, [2, 6]),
        ("AREA", {"case": "insensitive"}, [2, 3, 6]),
        ("are", {"word": True}, []),
        ("area", {"word": True, "case": "sensitive"}, [2, 6]),
        (r"def \w+\(", {"regex": True}, [2]),
        (r"^area\s*=", {"regex": True}, [6]),
        (r"\Sarea", {"regex": True}, [6]),
        (r"(?<=def )area", {"regex": True}, [2]),
        ("area()", {}, [6]),
        ("Shape().", {}, [6]),
        ("self):", {}, [2]),
        ("nothing like it", {}, []),
    ],
)
def test_queries(workspace: Workspace, query: str, options: dict[str, Any], found: list[int]) -> None:
    hits = places(workspace, query, globs=["*.py"], **options)
    assert [line for _path, line, _column in hits] == found


def test_hits_carry_their_text_and_symbol(workspace: Workspace) -> None:
    hits = search(workspace, "area", globs=["*.py"]).hits
    assert [(hit.text, hit.symbol) for hit in hits] == [
        ("    def area(self):", "Shape.area"),
        ("        return AREA", "Shape.area"),
        ("area = Shape().area()", "area"),
    ]
    assert search(workspace, "two").hits[0].text == "two"


def test_a_query_is_never_taken_for_an_option(workspace: Workspace) -> None:
    assert places(workspace, "--pre=sh") == [("-x.txt", 1, 6)]


def test_a_limit_makes_the_result_incomplete(workspace: Workspace) -> None:
    result = search(workspace, "area", limit=3)
    assert (len(result.hits), result.complete) == (3, False)
    assert "first 3" in result.note
    assert search(workspace, "area", limit=9).complete
    assert not search(workspace, "ar.a", regex=True, limit=8).complete
    assert search(workspace, "ar.a", regex=True, limit=9).complete


def test_more_files_than_one_call_takes(workspace: Workspace) -> None:
    for number in range(450):
        (workspace.root / f"many{number:03}.txt").write_text("needle\n")
    assert len(places(workspace, "needle", limit=1000)) == 450


@pytest.mark.parametrize("query", ["(", "[a", "*x", "a{99999999999}"])
def test_a_bad_expression_is_refused(workspace: Workspace, query: str) -> None:
    with pytest.raises(ToolRefused, match="not a valid regular expression"):
        search(workspace, query, regex=True)
    assert search(workspace, query).complete


@pytest.mark.parametrize("query", ["", "\n", "a\nb"])
def test_a_query_that_can_match_no_line_is_refused(workspace: Workspace, query: str) -> None:
    with pytest.raises(ToolRefused):
        search(workspace, query)


def test_an_expression_that_runs_away_is_stopped(workspace: Workspace) -> None:
    (workspace.root / "run.txt").write_text("a" * 40 + "bc\n")
    (workspace.root / "away.txt").write_text("a" * 40 + "b\n")
    # Look-ahead keeps ripgrep from taking it; our own needs exponential time for the first file that fails.
    result = search(workspace, r"(?=a)(a+)+b$", regex=True, globs=["away.txt", "run.txt"], seconds=1)
    assert [hit.path for hit in result.hits] == ["away.txt"]
    assert not result.complete
    assert "run.txt" in result.note


def test_no_time_left(workspace: Workspace) -> None:
    result = search(workspace, "area", seconds=-1)
    assert not result.complete
    assert "time was up" in result.note


def test_a_cancelled_search_stops(workspace: Workspace) -> None:
    workspace.cancel = CancelToken()
    workspace.cancel.cancel()
    for regex in (False, True):
        with pytest.raises(Cancelled):
            search(workspace, "area", regex=regex)


def test_a_search_is_cancelled_while_an_expression_runs_away(workspace: Workspace) -> None:
    (workspace.root / "run.txt").write_text("a" * 60 + "bc\n")
    workspace.cancel = CancelToken()
    timer = threading.Timer(0.3, workspace.cancel.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        search(workspace, r"(?=a)(a+)+b$", regex=True, globs=["run.txt"], seconds=60)
    timer.join()


def line(kind: str, **data: Any) -> bytes:
    return json.dumps({"type": kind, "data": data}).encode() + b"\n"


def test_ripgreps_output_is_read() -> None:
    def match(path: dict[str, str], text: dict[str, str], start: int) -> bytes:
        return line(
            "match", path=path, lines=text, line_number=3, submatches=[{"start": start, "end": start + 1}]
        )

    output = (
        line("begin", path={"text": "./a.py"})
        + match({"text": "./a.py"}, {"text": "é x = 1\r\n"}, 3)
        + line("end", path={"text": "./a.py"}, binary_offset=None)
        + match({"bytes": "Li9iLnB5"}, {"bytes": "4SB4Cg=="}, 2)
        + line("end", path={"bytes": "Li9iLnB5"}, binary_offset=None)
        + match({"text": "./c.bin"}, {"text": "x\n"}, 0)
        + line("end", path={"text": "./c.bin"}, binary_offset=7)
        + line("summary")
    )
    assert [(hit.path, hit.line, hit.column, hit.text) for hit in _parse_ripgrep(output)] == [
        ("a.py", 3, 3, "é x = 1"),
        ("b.py", 3, 3, "á x"),
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("area", [("src/shape.py", 2, "method"), ("src/shape.py", 6, "variable")]),
        ("Shape.area", [("src/shape.py", 2, "method")]),
        ("Shape::area", [("src/shape.py", 2, "method")]),
        ("shape", [("src/shape.py", 1, "class")]),
        ("Shape", [("src/shape.py", 1, "class")]),
        ("hape", []),
        ("Other.area", []),
    ],
)
def test_symbols_are_found_by_name(
    workspace: Workspace, name: str, found: list[tuple[str, int, str]]
) -> None:
    symbols = find_symbols(workspace, name)
    assert [(symbol.path, symbol.line, symbol.kind) for symbol in symbols] == found


def test_an_empty_name_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ToolRefused, match="empty"):
        find_symbols(workspace, " . ")
