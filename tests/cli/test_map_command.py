"""`agent-ls map` and `agent-ls context`: the documents for programs, the lines for people, bad input."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli_kit import PROGRAM, agent_ls, make_repo

FILES = {
    "shop/money.py": "class MoneyAmount:\n    def rounded_up(self):\n        return self\n",
    "shop/cart.py": "from shop.money import MoneyAmount\n\n\n"
    "def total_amount():\n    return MoneyAmount().rounded_up()\n",
    "tests/test_cart.py": "from shop.cart import total_amount\n\n\n"
    "def test_total():\n    assert total_amount()\n",
    ".agent-ls/issues/7.md": "# `rounded_up` rounds down\n\nBy a cent.\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repo(tmp_path_factory.mktemp("map") / "repo", FILES)


def test_map_as_json(root: Path) -> None:
    document = agent_ls("map", "--tokens", "200", "--json", cwd=root).document()
    assert document["schema"] == 1
    assert document["text"].startswith("shop/money.py:\n  class MoneyAmount\n    def rounded_up(self)\n")
    assert 0 < document["tokens"] <= 200
    assert document["files"][0]["path"] == "shop/money.py"
    assert sum(file["rank"] for file in document["files"]) == pytest.approx(1.0)


def test_map_for_people_and_its_focus(root: Path) -> None:
    plain = agent_ls("map", cwd=root)
    assert plain.code == 0
    assert plain.stdout.startswith("shop/money.py:")
    assert "3 of 3 source files" in plain.stderr
    path = "tests/test_cart.py"
    rank = {row["path"]: row["rank"] for row in agent_ls("map", "--json", cwd=root).document()["files"]}
    document = agent_ls("map", "--json", "--file", path, cwd=root).document()
    assert {row["path"]: row["rank"] for row in document["files"]}[path] > 2 * rank[path]
    about = agent_ls("map", "--about", "total_amount", "--quiet", cwd=root)
    assert about.stdout.startswith("shop/cart.py:")
    assert about.stderr == ""


SOURCES = [["`rounded_up` rounds down"], ["--issue", "7"], ["--issue-file", ".agent-ls/issues/7.md"]]


@pytest.mark.parametrize("arguments", SOURCES)
def test_context_as_json(root: Path, arguments: list[str]) -> None:
    first = agent_ls("context", *arguments, "--json", cwd=root).document()["files"][0]
    assert first["path"] == "shop/money.py"
    assert first["reasons"][0] == "defines `rounded_up`, named in the task"
    assert first["score"] > 0
    symbol = first["symbols"][0]
    assert (symbol["name"], symbol["line"], symbol["end_line"]) == ("MoneyAmount.rounded_up", 2, 3)


def test_context_from_stdin(root: Path) -> None:
    text = b"`rounded_up` rounds down"
    done = subprocess.run([*PROGRAM, "context", "-"], cwd=root, input=text, capture_output=True, check=True)
    assert done.stdout.split(b"\n")[0].endswith(b"  shop/money.py")


def test_context_for_people(root: Path) -> None:
    done = agent_ls("context", "`rounded_up` rounds down", "--limit", "1", cwd=root)
    assert done.code == 0
    first, *rest = done.stdout.splitlines()
    assert first.endswith("  shop/money.py")
    assert "defines `rounded_up`, named in the task" in rest[0]
    assert "2: def rounded_up(self)" in done.stdout
    assert "cart.py" not in first


def test_nothing_fits(root: Path) -> None:
    done = agent_ls("context", "zzzqqq", cwd=root)
    assert (done.code, done.stdout) == (0, "")
    assert "nothing in the repository" in done.stderr


BAD = [
    (["context"], "give the task once"),
    (["context", "x", "--issue", "7"], "give the task once"),
    (["context", "  "], "the task is empty"),
    (["context", "--issue", "99"], "issue 99 was not found"),
    (["context", "--issue-file", "gone.md"], "gone.md"),
    (["map", "--file", "gone.py"], "gone.py is no file"),
    (["map", "--tokens", "3"], "64"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_bad_input_is_said(root: Path, arguments: list[str], said: str) -> None:
    done = agent_ls(*arguments, cwd=root)
    assert done.code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_folder_outside_any_repository(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert agent_ls("map", "--quiet", cwd=tmp_path).stdout.startswith("shop/money.py:")
    assert "shop/money.py" in agent_ls("context", "`rounded_up` rounds down", cwd=tmp_path).stdout
    done = agent_ls("context", "--issue", "7", cwd=tmp_path)
    assert (done.code, done.stdout) == (2, "")
