"""Secrets leave no trace, and JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.redact import REDACTED, make_key_remover, make_redactor

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


def of(*parts: str) -> str:
    """Test tokens are put together here, so that no scanner takes this file for a leak."""
    return "".join(parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (of("x ghp", "_", "A1b2" * 9, " y"), "x [redacted] y"),
        (of("github", "_pat_", "A1b2C3_" * 5), "[redacted]"),
        (of("glpat", "-", "a1B2c3D4e5F6g7H8i9J0"), "[redacted]"),
        (of("key=sk", "-ant-api03-", "abcDEF123456"), "key=[redacted]"),
        (of("sk", "-proj-", "abc123" * 5), "[redacted]"),
        (of("AKIA", "IOSFODNN7EXAMPLE."), "[redacted]."),
        (of("xoxb", "-1234567890-abcdef"), "[redacted]"),
        (of("eyJ", "hbGciOiJIUzI1NiJ9", ".eyJ", "zdWIiOiIxIn0", ".c2lnbmF0dXJl"), "[redacted]"),
        (f"a\n{PEM}\nb", "a\n[redacted]\nb"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow\nIBAAKC", "[redacted]"),
        ("postgres://admin:hunter2@db:5432/x", "postgres://[redacted]@db:5432/x"),
        ("https://:tok3n@host/", "https://[redacted]@host/"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        ("a risk-based-approach-with-2-long-words", None),
        ("https://host/a:b@c", None),
        ("see user@host:path and http://[::1]:80/", None),
        ("task-", None),
        ("x = sk-learn-is-a-package-without-digits", None),
        ("", None),
    ],
)
def test_shapes(text: str, expected: str | None) -> None:
    assert make_redactor()(text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("MY_TOKEN", "s3cr3t-value", True),
        ("DB_PASSWORD", "correct horse", True),
        ("STRIPE_API_KEY", "abcdefgh", True),
        ("SIGNING_KEY", "0123456789", True),
        ("MY_TOKEN", "short", False),
        ("SSH_AUTH_SOCK", "/tmp/agent.1234", False),
        ("GITHUB_TOKEN_FILE", "credentials.txt", False),
        ("HOME_DIRECTORY", "longer-than-eight", False),
        ("KEYBOARD", "qwertyuiop", False),
    ],
)
def test_environment(monkeypatch: pytest.MonkeyPatch, name: str, value: str, hidden: bool) -> None:
    monkeypatch.setenv(name, value)
    text = make_redactor()(f"before {value} after")
    assert text == (f"before {REDACTED} after" if hidden else f"before {value} after")


def test_what_names_the_work_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "postgres")
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")
    redact = make_redactor(["postgres-key"], keep=["/home/me/postgres-tool", "tests/test_x.py::test_a"])
    text = "/home/me/postgres-tool with s3cr3t-value and postgres-key"
    assert redact(text) == f"/home/me/postgres-tool with {REDACTED} and {REDACTED}"
    assert make_redactor()("postgres") == REDACTED
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-that-is-long-enough")
    title = "why is a-key-that-is-long-enough refused?"
    assert make_redactor(keep=[title])(title) == f"why is {REDACTED} refused?"


def test_extra_values_and_overlaps() -> None:
    redact = make_redactor(["abcdef", "abcdefgh-and-more", ""])
    assert redact("abcdefgh-and-more abcdef") == f"{REDACTED} {REDACTED}"


def test_prompts_lose_our_own_keys_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("PGPASSWORD", "postgres-and-more")
    token = of("ghp", "_", "A1b2" * 9)
    text = f"none postgres-and-more {token} key-of-the-environment key-of-the-settings"
    hide = make_key_remover(["key-of-the-settings", ""])
    assert hide(text) == f"none postgres-and-more {token} {REDACTED} {REDACTED}"
    assert hide('{"k": "key-of-the-environment"}') == f'{{"k": "{REDACTED}"}}'
    monkeypatch.delenv("OPENAI_API_KEY")
    assert make_key_remover()(text) == text


def test_a_json_line_keeps_its_form() -> None:
    redact = make_redactor(['qu"ote\\s', "12345678", "line\nbreak"])
    line = json.dumps(
        {"seq": 3, "time": 0.12345678, "data": {"t": ['is qu"ote\\s', "line\nbreak!", 12345678], "key": PEM}}
    )
    assert json.loads(redact(line)) == {
        "seq": 3,
        "time": 0.12345678,
        "data": {"t": [f"is {REDACTED}", f"{REDACTED}!", 12345678], "key": REDACTED},
    }


def test_json_inside_json() -> None:
    secret = 'a"b\\c-secret'
    inner = json.dumps({"password": secret})
    redacted = make_redactor([secret])(json.dumps({"text": inner}))
    assert json.loads(json.loads(redacted)["text"]) == {"password": REDACTED}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=4, max_size=12), _JSON)
def test_no_secret_survives_and_every_document_parses(secret: str, value: Any) -> None:
    document = {"before": value, "leak": f"<{secret}>", "n": 1}
    redacted = make_redactor([secret])(json.dumps(document, ensure_ascii=False))
    found = json.loads(redacted)
    assert found["n"] == 1 if "n" in found else True
    for text in _strings(found):
        assert secret not in text.replace(REDACTED, "") or secret in REDACTED


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []
