"""The Model Context Protocol, with the package's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_ls.cli.sample import create_sample

pytest.importorskip("mcp")


async def talk(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agent_ls", "mcp", "--repo", str(root)], env=dict(os.environ)
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = await session.list_tools()
        answers: list[Any] = [sorted(tool.name for tool in tools.tools)]
        for name, arguments in calls:
            done = await session.call_tool(name, arguments)
            text = done.content[0].text if done.content else ""
            answers.append(text if done.is_error else done.structured_content)
        return answers


@pytest.mark.slow
def test_the_tools_answer_and_refuse(tmp_path: Path) -> None:
    root = create_sample(tmp_path / "repo")
    test = "tests/test_period.py::PeriodTest::test_contains_its_last_day"
    (root / "tests" / "test_money.py").unlink()
    names, hits, symbols, tests, suspects, findings, refused = asyncio.run(
        talk(
            root,
            ("search", {"query": "def contains"}),
            ("symbols", {"name": "contains"}),
            ("run_tests", {"ids": [test]}),
            ("locate", {"tests": [test], "limit": 3}),
            ("guard", {}),
            ("search", {"query": ""}),
        )
    )
    assert names == ["guard", "locate", "run_tests", "search", "symbols"]
    assert [(it["path"], it["line"]) for it in hits["hits"]] == [("meterly/period.py", 32)]
    assert [it["name"] for it in symbols["symbols"]] == ["Period.contains"]
    assert (tests["outcome"], [it["id"] for it in tests["failing"]]) == ("failed", [test])
    assert suspects["suspects"][0]["path"] == "meterly/period.py"
    assert {it["severity"] for it in findings["findings"]} & {"block", "review"}
    assert "the query is empty" in refused
