"""The real local model. Skipped, loudly, on machines that don't have it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, ContextTooLong, ProviderError, UsageError
from agent_ls.models import catalog
from agent_ls.models.local import LocalBackend
from agent_ls.models.protocol import Message, Reply, Request, TextDelta, gather
from agent_ls.models.serve import serve

NAME = "qwen2.5-coder-1.5b"
FILE = catalog.path(NAME)
RUNTIME = importlib.util.find_spec("xllamacpp") is not None
needs_model = [
    pytest.mark.local_model,
    pytest.mark.slow,
    pytest.mark.skipif(
        FILE is None or not RUNTIME,
        reason=f"THE LOCAL MODEL IS NOT TESTED: run `agent-ls model install {NAME}`"
        + ("" if RUNTIME else " and `pip install 'agent-ls[local]'`"),
    ),
]


@pytest.fixture(scope="module")
def qwen() -> Iterator[LocalBackend]:
    assert FILE is not None
    made = LocalBackend(f"local:{NAME}", FILE, window=1024)
    yield made
    made.close()


def ask(made: LocalBackend, text: str, **options: object) -> Reply:
    request = Request([Message("user", text)], **{"max_tokens": 8, **options})  # type: ignore[arg-type]
    return gather(made.stream(request, CancelToken()))


class TestRealModel:
    pytestmark = needs_model

    def test_completion(self, qwen: LocalBackend, capfd: pytest.CaptureFixture[str]) -> None:
        replies = [ask(qwen, "What is 2 + 3? Answer with the number.", max_tokens=8) for _ in range(2)]
        assert "5" in replies[0].text
        assert replies[0].text == replies[1].text
        assert replies[0].usage.input_tokens > 10
        assert replies[0].usage.output_tokens > 0
        assert replies[1].usage.cached_tokens >= replies[1].usage.input_tokens - 1
        assert replies[0].usage.cost_usd == 0.0
        assert capfd.readouterr() == ("", "")

    def test_grammar_and_schema(self, qwen: LocalBackend) -> None:
        assert ask(qwen, "Tell me a story.", grammar='root ::= "tick" | "tock"').text in ("tick", "tock")
        schema = {
            "type": "object",
            "properties": {"answer": {"enum": [17, 18]}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        answer = json.loads(ask(qwen, "Tell me a story.", json_schema=schema, max_tokens=40).text)
        assert answer in ({"answer": 17}, {"answer": 18})

    def test_seed_and_stop(self, qwen: LocalBackend) -> None:
        ask(qwen, "Invent a word.", max_tokens=1)  # from here on the prompt cache is the same for all
        texts = [
            ask(qwen, "Invent a word.", temperature=1.5, seed=seed, max_tokens=5).text for seed in (1, 1, 2)
        ]
        assert texts[0] == texts[1]
        assert len(set(texts)) > 1
        assert "3" not in ask(qwen, "Count: 1, 2, 3, 4, 5", stop=["3"], max_tokens=12).text
        assert ask(qwen, "Count from 1 to 100.", max_tokens=3).stop_reason == "max_tokens"

    def test_tokens_are_exact(self, qwen: LocalBackend) -> None:
        assert qwen.count_tokens("hello world") == 2
        assert qwen.count_tokens("") == 0
        more = "def f(x):\n    return x + 1\n" * 5
        grown = ask(qwen, more, max_tokens=1).usage.input_tokens
        base = ask(qwen, "", max_tokens=1).usage.input_tokens
        assert abs(grown - base - qwen.count_tokens(more)) <= 1

    def test_too_long(self, qwen: LocalBackend) -> None:
        with pytest.raises(ContextTooLong, match="exceeds the available context size"):
            ask(qwen, "word " * 2000)
        assert ask(qwen, "Say hi.", max_tokens=4).text

    def test_a_bad_grammar_is_an_error(self, qwen: LocalBackend) -> None:
        with pytest.raises(ProviderError, match="grammar"):
            ask(qwen, "Hi", grammar="root ::= (")

    @pytest.mark.parametrize("when", ["reading the prompt", "writing"])
    def test_cancel(self, qwen: LocalBackend, when: str) -> None:
        cancel = CancelToken()
        text = " ".join(f"x{i} = {i}" for i in range(90)) if when == "reading the prompt" else "Count to 500."
        stream = qwen.stream(Request([Message("user", text)], max_tokens=400), cancel)
        written = []
        if when == "reading the prompt":
            threading.Timer(0.3, cancel.cancel).start()
        with pytest.raises(Cancelled):
            for event in stream:
                written.append(event)
                if when == "writing" and len(written) == 3:
                    cancel.cancel()
        assert len([event for event in written if isinstance(event, TextDelta)]) in (0, 3)
        assert ask(qwen, "Say hi.", max_tokens=4).text  # and it can be asked again

    def test_serve(self) -> None:
        cancel, ready = CancelToken(), threading.Event()
        urls: list[str] = []

        def on_ready(url: str) -> None:
            urls.append(url)
            ready.set()

        options = {"port": 0, "window": 256, "on_ready": on_ready, "cancel": cancel}
        thread = threading.Thread(target=serve, args=(NAME,), kwargs=options)
        thread.start()
        try:
            assert ready.wait(60)
            listed = httpx.get(f"{urls[0]}/models", trust_env=False).json()
            assert listed["data"][0]["id"] == NAME
        finally:
            cancel.cancel()
            thread.join(30)
        assert not thread.is_alive()

    def test_nothing_but_the_answer_is_written(self) -> None:
        """Load, answer and cancel in a process of its own: its output is ours alone, its exit is clean."""
        program = f"""
import threading
from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.models import create
from agent_ls.models.protocol import Message, Request, gather
from agent_ls.settings import Settings
made = create(Settings(model="local:{NAME}", context_window=512))
cancel = CancelToken()
events = made.stream(Request([Message("user", "Count to 500.")], max_tokens=300), cancel)
next(events)
cancel.cancel()
try:
    gather(events)
except Cancelled:
    print("cancelled")
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")

    @pytest.mark.parametrize("end", ["", "import agent_ls.__main__ as m; m._leave_llama_behind(0)"])
    def test_leaving_in_the_middle_of_an_answer(self, end: str) -> None:
        """Nobody cancels, nothing is closed: the process still ends cleanly."""
        program = f"""
from agent_ls.cancel import CancelToken
from agent_ls.models import create
from agent_ls.models.local import busy
from agent_ls.models.protocol import Message, Request
from agent_ls.settings import Settings
made = create(Settings(model="local:{NAME}", context_window=512))
events = made.stream(Request([Message("user", "Count to 500.")], max_tokens=400), CancelToken())
next(events)
print(busy())
{end}
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not RUNTIME, reason="xllamacpp is not installed")
def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ProviderError, match=r"cannot start with broken\.gguf"):
        ask(LocalBackend("local:x", file, window=64, threads=1), "hi")


def test_without_llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'agent-ls\[local\]'"):
        LocalBackend("local:x", tmp_path / "x.gguf")


@pytest.mark.parametrize(("options", "says"), [({"host": "0.0.0.0"}, "loopback"), ({"port": 70000}, "65535")])
def test_serve_refuses(options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        serve(NAME, on_ready=print, cancel=CancelToken(), **options)  # type: ignore[arg-type]
