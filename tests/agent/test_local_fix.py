"""One small fix by the real local model, end to end. Skipped, loudly, where it is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from agent_kit import BUGGY, git, make_repo

from agent_ls.agent import api
from agent_ls.cancel import CancelToken
from agent_ls.models import catalog
from agent_ls.settings import Settings
from agent_ls.task import Task
from agent_ls.verdict import Verdict

NAME = "qwen2.5-coder-1.5b"
MISSING = catalog.path(NAME) is None or importlib.util.find_spec("xllamacpp") is None


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.skipif(MISSING, reason=f"THE LOCAL MODEL IS NOT TESTED: `agent-ls model install {NAME}`")
def test_the_local_model_fixes_a_small_bug(tmp_path: Path) -> None:
    files = {**BUGGY, "shop/cart.py": BUGGY["shop/cart.py"].replace("len(prices)", "len(prices) + 1")}
    files["tests/test_cart.py"] = (
        "from shop.cart import count\n\n\ndef test_count():\n    assert count([1, 2]) == 2\n"
    )
    repo = make_repo(tmp_path / "repo", files)
    report = api.fix(
        repo,
        Task("count() is one too many"),
        Settings(model=f"local:{NAME}", seed=1),
        cancel=CancelToken(),
    )
    assert report.verdict is Verdict.FIXED, report.data["summary"]
    assert report.data["usage"]["model_calls"] >= 1
    assert report.data["usage"]["output_tokens"] > 0
    assert "len(prices) + 1" not in git(repo, "show", f"{report.data['branch']}:shop/cart.py")
