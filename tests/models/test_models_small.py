"""Names, prices, token estimates, backoff, and the thread that waits in our place."""

from __future__ import annotations

import email.utils
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, ProviderError, UsageError
from agent_ls.models import create
from agent_ls.models._estimate import estimate_request, estimate_tokens
from agent_ls.models._http import is_private, retry_after
from agent_ls.models.local import default_threads, usable_cores
from agent_ls.models.prices import _table, hosted_model, price
from agent_ls.models.protocol import Message, Request, Retrying, TextDelta, Usage, gather
from agent_ls.models.retry import RetryPolicy, TransientError, retrying
from agent_ls.settings import Settings
from agent_ls.waiting import Stopped, pump

BAD_NAMES = [
    ("repair", "built-in engine"),
    ("antropic:claude", "anthropic:<model>"),
    ("gpt-5", "openai:<model>"),
    ("openai:", "openai:<model>"),
    ("", "replay:<file>"),
    ("local:qwen2.5", "qwen2.5-coder-1.5b"),
    ("local:/nowhere/x.gguf", "no file"),
    ("anthropic:claude", "ANTHROPIC_API_KEY"),
    ("openai:gpt-5", "OPENAI_API_KEY"),
    ("replay:/nowhere", "/nowhere"),
]


@pytest.mark.parametrize(("name", "says"), BAD_NAMES)
def test_names_that_give_no_backend(name: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        create(Settings(), model=name) if name else create(Settings(model=name))
    assert says in str(caught.value)


def test_a_model_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(tmp_path))
    with pytest.raises(UsageError, match=r"agent-ls model install qwen2\.5-coder-1\.5b"):
        create(Settings(model="local:qwen2.5-coder-1.5b"))


def test_keys_and_addresses_come_from_settings_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-environment")
    made = create(Settings(model="anthropic:claude-sonnet-4-5"))
    assert made._endpoint.headers["x-api-key"] == "from-environment"  # type: ignore[attr-defined]
    assert made.capabilities.window == 200_000
    settings = Settings(api_key="from-settings", base_url="http://localhost:1/v1", context_window=999)
    made = create(settings, model="openai:x")
    assert made._endpoint.headers["Authorization"] == "Bearer from-settings"  # type: ignore[attr-defined]
    assert (made.name, made.capabilities.window) == ("openai:x", 999)
    made = create(settings, model="anthropic:x")
    assert made._endpoint.url == "http://localhost:1/v1/messages"  # type: ignore[attr-defined]


MILLION = Usage(1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("model", "usage", "written", "usd"),
    [
        ("anthropic:claude-sonnet-4-5", MILLION, 0, 18.0),
        ("anthropic:claude-sonnet-4-5-20250929", MILLION, 0, 18.0),
        ("anthropic:claude-opus-4-1", Usage(1000, 0, 1000), 0, 0.0015),
        ("anthropic:claude-opus-4-1", Usage(1000, 0, 0), 1000, 0.01875),
        ("anthropic:claude-haiku-5-5", Usage(100_000, 0), 0, 0.01),
        ("anthropic:claude-haiku-5-5", Usage(200_000, 0), 0, 0.1),
        ("openai:gpt-5-nano-2025-08-07", MILLION, 0, 0.45),
        ("openai:gpt-4.1", Usage(1_000_000, 0, 1_000_000), 0, 0.5),
        ("openai:unheard-of", MILLION, 0, None),
        ("openai:o3", MILLION, 0, None),
        ("anthropic:claude-sonnet-4-5-preview", MILLION, 0, None),
        ("local:qwen2.5-coder-1.5b", MILLION, 0, 0.0),
        ("repair", MILLION, 0, 0.0),
        ("replay:x", MILLION, 0, 0.0),
    ],
)
def test_price(model: str, usage: Usage, written: int, usd: float | None) -> None:
    assert price(model, usage, cache_write_tokens=written) == (None if usd is None else pytest.approx(usd))


def test_the_price_list_is_plausible() -> None:
    for name, model in _table().items():
        for rates in filter(None, (model.rates, model.long_rates)):
            assert 0 < rates.cached < rates.input < rates.output, name
            assert rates.input <= rates.cache_write <= 2 * rates.input, name
        assert 100_000 <= model.window <= 2_000_000, name
    assert hosted_model("anthropic:claude-sonnet-4-5-latest") is hosted_model("anthropic:claude-sonnet-4-5")


@given(st.text(), st.text())
def test_estimates_grow_with_the_text(left: str, right: str) -> None:
    assert 0 <= estimate_tokens(left) <= estimate_tokens(left + right)
    assert estimate_tokens(left + right) >= len(left + right) / 3.3
    request = Request([Message("user", left)])
    assert estimate_request(request) > estimate_tokens(left)


def test_backoff_doubles_up_to_its_cap() -> None:
    tries = iter([None, None, None, 0.5, None])

    def attempt() -> Iterator[TextDelta]:
        yield TextDelta("x")
        raise TransientError("busy", next(tries))

    times = iter([0.0, 0.0, 0.0, 0.0, 0.0, 100.0])
    policy = RetryPolicy(
        first_wait_s=2, max_wait_s=5, deadline_s=60, clock=lambda: next(times), random=lambda: 0.5
    )

    class Waits(CancelToken):
        def wait(self, seconds: float) -> bool:
            return False

    events = []
    with pytest.raises(ProviderError, match=r"m: busy \(gave up after 5 attempts in 100 s\)"):
        for event in retrying("m", attempt, policy, Waits()):
            events.append(event)
    waits = [(event.attempt, event.wait_s) for event in events if isinstance(event, Retrying)]
    assert waits == [(1, 2.0), (2, 4.0), (3, 5.0), (4, pytest.approx(0.5, rel=0.1))]


@given(st.floats(0, 1))
def test_jitter_stays_within_its_share(random: float) -> None:
    def attempt() -> Iterator[TextDelta]:
        raise TransientError("busy")
        yield TextDelta("")

    policy = RetryPolicy(first_wait_s=2, jitter=0.25, random=lambda: random)
    event = next(retrying("m", attempt, policy, CancelToken()))
    assert isinstance(event, Retrying)
    assert 1.5 <= event.wait_s <= 2.5


def test_text_of_a_failed_attempt_is_dropped() -> None:
    events = [TextDelta("half"), Retrying("broke", 1, 0.0), TextDelta("whole")]
    assert gather(iter(events)).text == "whole"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": email.utils.formatdate(1030, usegmt=True)}, 30),
        ({"retry-after": email.utils.formatdate(970, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1000.0) == seconds


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("10.1.2.3", True),
        ("gpu-box", True),
        ("gpu.lan", True),
        ("api.example.com", False),
        ("8.8.8.8", False),
        ("2606:4700::1", False),
        ("localhost.example.com", False),
    ],
)
def test_private_hosts(host: str, private: bool) -> None:
    assert is_private(host) is private


@pytest.mark.parametrize(
    ("cores", "busy", "threads"),
    [(2, 0.0, 2), (2, 0.4, 2), (2, 1.0, 1), (2, 2.0, 1), (8, 3.1, 5), (1, 0.0, 1)],
)
def test_threads(cores: int, busy: float, threads: int) -> None:
    assert default_threads(busy, cores) == threads


def test_threads_of_this_machine() -> None:
    assert 1 <= default_threads() <= usable_cores()


def test_pump_passes_items_and_errors() -> None:
    def produce(emit: Callable[[int], None]) -> None:
        emit(1)
        emit(2)
        raise ValueError("broke")

    got = []
    with pytest.raises(ValueError, match="broke"):
        for item in pump(produce, CancelToken()):
            got.append(item)
    assert got == [1, 2]


@pytest.mark.parametrize("how", ["cancel", "close", "exception"])
def test_pump_stops_a_producer_that_waits(how: str) -> None:
    stop, seen = threading.Event(), threading.Event()
    cancel = CancelToken()

    def produce(emit: Callable[[int], None]) -> None:
        emit(1)
        assert stop.wait(30)
        try:
            emit(2)
        except Stopped:
            seen.set()
            raise

    stream = pump(produce, cancel, stop.set)
    assert next(stream) == 1
    if how == "cancel":
        threading.Timer(0.05, cancel.cancel).start()
        with pytest.raises(Cancelled):
            next(stream)
    elif how == "close":
        stream.close()  # type: ignore[attr-defined]
    else:
        with pytest.raises(KeyError):
            stream.throw(KeyError())  # type: ignore[attr-defined]
    assert seen.wait(10)
