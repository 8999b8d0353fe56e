"""`agent-ls search`, `symbols`, `refs`: what is printed, the JSON documents and the exit codes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_kit import PROGRAM, agent_ls, make_repo

FILES = {
    "shapes/__init__.py": "",
    "shapes/shape.py": "# area of shapes\nfrom shapes.units import scale\n\n\n"
    "class Shape:\n    def area(self):\n        return scale(1)\n",
    "shapes/units.py": "def scale(x):\n    return abs(x)\n",
    "tests/test_shape.py": "from shapes.shape import Shape\n\n\n"
    "def test_area():\n    assert Shape().area() == 1\n",
    "notes.txt": "area\x1b[31m is\tmeasured\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repo(tmp_path_factory.mktemp("code") / "repo", FILES)


def test_definitions_come_first_and_text_is_made_harmless(root: Path) -> None:
    found = agent_ls("search", "area", cwd=root)
    assert (found.code, found.stdout.splitlines()) == (
        0,
        [
            "shapes/shape.py:6:9:     def area(self):",
            "tests/test_shape.py:4:10: def test_area():",
            "tests/test_shape.py:5:20:     assert Shape().area() == 1",
            "notes.txt:1:1: area is\tmeasured",
            "shapes/shape.py:1:3: # area of shapes",
        ],
    )


@pytest.mark.parametrize(
    ("arguments", "code", "lines"),
    [
        (["AREA"], 1, 0),
        (["AREA", "-i"], 0, 5),
        (["AREA", "-S"], 1, 0),
        (["area", "-S"], 0, 5),
        (["are", "-w"], 1, 0),
        (["area", "-g", "*.txt"], 0, 1),
        ([r"def \w+\(self", "--regex"], 0, 1),
        ([r"^\S+$", "--regex", "-g", "*.md"], 1, 0),
        (["area", "--no-index"], 0, 5),
        (["area", "--limit", "2"], 0, 2),
    ],
)
def test_options_and_exit_codes(root: Path, arguments: list[str], code: int, lines: int) -> None:
    found = agent_ls("search", *arguments, cwd=root)
    assert (found.code, len(found.stdout.splitlines())) == (code, lines)
    assert ("only the first 2 hits" in found.stderr) is ("--limit" in arguments)


def test_the_document_of_a_search(root: Path) -> None:
    found = agent_ls("search", "scale(", "--json", cwd=root)
    assert found.code == 0
    assert found.document() == {
        "schema": 1,
        "hits": [
            {"path": "shapes/units.py", "line": 1, "column": 5, "text": "def scale(x):", "symbol": "scale"},
            {
                "path": "shapes/shape.py",
                "line": 7,
                "column": 16,
                "text": "        return scale(1)",
                "symbol": "Shape.area",
            },
        ],
        "complete": True,
    }
    nothing = agent_ls("search", "nowhere", "--json", cwd=root)
    assert (nothing.code, nothing.document()) == (1, {"schema": 1, "hits": [], "complete": True})


def test_the_hit_is_highlighted_on_a_terminal(root: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    command = f"{' '.join(map(str, PROGRAM))} search 'def area'"
    env = {**os.environ, "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    done = subprocess.run(
        ["script", "-qec", command, str(record)],
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert re.search(
        rb"\x1b\[36mshapes/shape.py:6:5:\x1b\[0m     \x1b\[1;31mdef area\x1b\[0m\(self\):", done.stdout
    )


def rows(root: Path, *arguments: str) -> list[str]:
    found = agent_ls(*arguments, "--json", cwd=root)
    assert found.code == 0
    document = found.document()
    assert document["schema"] == 1
    fields = {"name", "kind", "path", "line", "end_line", "container", "signature"}
    assert all(fields <= set(row) for row in document["symbols"])
    return [f"{row['path']}:{row['line']} {row['kind']} {row['name']}" for row in document["symbols"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["symbols", "Shape.area"], ["shapes/shape.py:6 method area"]),
        (["symbols", "shape", "--kind", "class"], ["shapes/shape.py:5 class Shape"]),
        (["symbols", "scal"], ["shapes/units.py:1 function scale"]),
        (["symbols", "area", "--glob", "*.txt"], []),
        (["refs", "scale"], ["shapes/shape.py:2 import scale", "shapes/shape.py:7 call scale"]),
        (["refs", "scale", "--kind", "call"], ["shapes/shape.py:7 call scale"]),
        (["refs", "scale", "--callers"], ["shapes/shape.py:6 method area"]),
        (["refs", "area", "--callees"], ["shapes/units.py:1 function scale"]),
        (["refs", "shapes/units.py", "--importers"], ["shapes/shape.py:2 import shapes.units"]),
        (["refs", "scale", "--tests"], ["tests/test_shape.py:4 function test_area"]),
        (["refs", "nothing"], []),
    ],
)
def test_documents_of_symbols_and_uses(root: Path, arguments: list[str], expected: list[str]) -> None:
    assert rows(root, *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "stdout", "stderr"),
    [
        (["symbols", "Shap"], "shapes/shape.py:5: class class Shape\n", "similar names"),
        (["symbols", "xyzzy"], "", "nothing named 'xyzzy'"),
        (["refs", "nothing"], "", "nothing uses 'nothing'"),
        (
            ["refs", "scale", "--callees"],
            "",
            "scale (shapes/units.py:1) also calls, defined elsewhere or in too many places: abs",
        ),
        (
            ["refs", "scale", "--tests"],
            "tests/test_shape.py:4: function def test_area()  uses area, which uses scale\n",
            "",
        ),
        (
            ["refs", "scale", "--callers"],
            "shapes/shape.py:6: method def area(self)  calls in line 7\n",
            "",
        ),
    ],
)
def test_what_people_see(root: Path, arguments: list[str], stdout: str, stderr: str) -> None:
    found = agent_ls(*arguments, cwd=root)
    assert (found.code, found.stdout) == (0, stdout)
    assert stderr in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", ""], "empty"),
        (["search", "(", "--regex"], "not a valid regular expression"),
        (["symbols", " . "], "the name is empty"),
        (["refs", "nothing.py", "--importers"], "there is no file 'nothing.py'"),
        (["refs", "x", "--callers", "--kind", "read"], "--kind is for uses alone"),
        (["refs", "x", "--tests", "--glob", "*.py"], "--glob does not go with --tests"),
    ],
)
def test_what_is_refused(root: Path, arguments: list[str], message: str) -> None:
    found = agent_ls(*arguments, cwd=root)
    assert (found.code, found.stdout) == (2, "")
    assert message in found.stderr


def test_without_a_cache_folder_the_answers_are_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(tmp_path / "file"))
    answers: list[Any] = [rows(root, "symbols", "area"), rows(root, "refs", "scale")]
    assert answers == [
        ["shapes/shape.py:6 method area"],
        ["shapes/shape.py:2 import scale", "shapes/shape.py:7 call scale"],
    ]
    assert agent_ls("search", "area", cwd=root).code == 0
