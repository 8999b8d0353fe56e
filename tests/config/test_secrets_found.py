"""Which texts hold a secret, and which only look as if."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.detect import find_secrets, is_secret_name
from agent_ls.masking import SecretMask


def of(*parts: str) -> str:
    """Put together here, so that no scanner takes this file for a leak."""
    return "".join(parts)


SECRETS = {
    "AWS key id": of("AKIA", "Z7QK3NM5PLW2XJ4R"),
    "GitHub": of("ghp", "_", "Zk3Qm7Xp" * 4 + "wXyZ"),
    "GitHub fine-grained": of("github", "_pat_", "11ABCDEFG0" + "aZ9k" * 8),
    "GitLab": of("glpat", "-", "x9Kq2ZtLw7Vb3NmRpQ4s"),
    "Slack": of("xoxb", "-2745193847261-Kd83jfQm2Lx9"),
    "Stripe": of("sk", "_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
    "Google": of("AIza", "SyD9vK2mQx7Lp4Rt8Wz1Nc6Bf3Hj5Gk0Qs"),
    "npm": of("npm", "_", "q8Zt3LkW9xVb2NmRpQ4sD7fGhJ1kYcXv6B0n"),
    "JWT": of("eyJ", "hbGciOiJIUzI1NiJ9", ".eyJ", "zdWIiOiI5ODcifQ", ".k9Qm2Lx7Vb3NmRpQ4sD7fGh"),
    "OpenAI": of("sk", "-proj-", "Qm2Lx9" * 5),
    "Anthropic": of("sk-ant", "-api03-", "Qm2Lx9Kd83"),
    "SendGrid": of("SG", ".", "q8Zt3LkW9xVb2NmRpQ4sD7", ".", "fGhJ1kYcXv6B0nq8Zt3LkW9xVb2NmRpQ4sD7fGhJ1kY"),
}
# Found by their form alone, wherever they stand.
POSITIONS = {
    "bare": "{}",
    "string": 'token = "{}"',
    "single quotes": "x('{}')",
    "bytes": "b'{}'",
    "f-string": "f'{{a}} {}'",
    "docstring": '"""Use {} here."""',
    "comment": "# {} is mine",
    "yaml": "auth:\n  value: {}",
    "json": '{{"a": ["{}"]}}',
    "escaped json": '"{{\\"a\\": \\"{}\\"}}"',
    "shell": "export X={}",
    "URL": "https://example.org/?k={}&x=1",
    "traceback": "E   AssertionError: assert '{}' == 'x'",
    "diff": '+    key = "{}"\n-    key = "x"',
    "markdown": "- `{}`",
}
# Found by the name beside them.
RANDOM = of("kJ8sQz2", "LmP9vXw4", "RtY7bNc3Hd")
ASSIGNMENTS = {
    "python": 'API_KEY = "{}"',
    "annotated": 'api_key: str = "{}"',
    "attribute": "self.secret_token = '{}'",
    "keyword argument": 'connect(password="{}")',
    "mapping": '{{"client_secret": "{}"}}',
    "subscript": "config['SECRET_KEY'] = '{}'",
    "bytes": "SECRET = b'{}'",
    "env file": "DB_PASSWORD={}",
    "export": "export STRIPE_SECRET_KEY={}",
    "yaml": "  access_token: {}",
    "toml": 'private_key = "{}"',
    "javascript": "const apiKey = `{}`;",
    "go": 'apiToken := "{}"',
    "java": 'String accessKey = "{}";',
    "php": "'db_password' => '{}',",
    "default of the environment": 'TOKEN = os.environ.get("TOKEN", "{}")',
    "json in a string": '"{{\\"password\\": \\"{}\\"}}"',
    "repr in output": "E  AssertionError: {{'auth_token': '{}'}}",
    "django": "SECRET_KEY = 'x{}'",
}
HONEST = [
    'sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    '"integrity": "sha512-Zk3Qm7XpZk3Qm7XpZk3Qm7XpZk3Qm7XpZk3Qm7XpZk3Qm7XpZk3Qm7Xp=="',
    "    --hash=sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'id = "123e4567-e89b-12d3-a456-426614174000"',
    "commit 1f0e3dad99908345f7439f8ffabdffc4f0a5b8ac",
    'password = "password"',
    'create_user(username="testclient", password="password123")',
    'API_KEY = "your-api-key-here-0000"',
    'SECRET_KEY = "django-insecure-test"',
    "token = get_token(request, settings.SECRET_KEY)",
    "password: str | None = None",
    "api_key = os.environ['API_KEY']",
    "token = self.tokenizer.next_token2(source)",
    'key = "some-plain-word"',
    'PRIMARY_KEY = "0002_alter_permission_name_max_length"',
    'token_type = "Bearer1234567890abcdefXYZ"',
    'PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]',
    'password_field = "user_password_2"',
    "https://example.org/path:8080/a@b",
    "postgres://postgres:postgres@localhost:5432/test",
    "ssh://git@example.org:22/x.git",
    "mysql://${USER}:${PASSWORD}@host/db",
    'error = "the token AKIA is too short"',
    'csrf_token = "{% csrf_token %}"',
    "a risk-based-approach-with-2-long-words",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    'public_key = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA7"',
    "keyboard = 'qwertyuiop1234567890'",
    'cache_key = "user:1234:profile:v2:aGVsbG8gd29ybGQ"',
    "assert token == 'x' * 40",
    "sort_key = lambda item: item.key3",
]


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_well_known_shapes(secret: str, position: str) -> None:
    assert found(position.format(secret)) == [secret]


@pytest.mark.parametrize("position", ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_names_and_random_values(position: str) -> None:
    (value,) = found(position.format(RANDOM))
    assert value.removeprefix("x") == RANDOM


@pytest.mark.parametrize("text", HONEST)
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


def test_other_places() -> None:
    assert found("db = 'postgres://app:gT7x-2Lq@db/x'") == ["gT7x-2Lq"]
    assert found("curl -H 'Authorization: Bearer qwe9Lk2mZx8'") == ["qwe9Lk2mZx8"]
    secret = of("wJalrXUtnFEMI", "/K7MDENG/bPxRfiCYz9Kq2Lm8Vb")
    assert found(f"{SECRETS['AWS key id']}\n{secret}\n") == [SECRETS["AWS key id"], secret]
    assert found("PASSWORD = 'Tr0ub4dor&3'") == ["Tr0ub4dor&3"]


def test_a_private_key_keeps_its_lines() -> None:
    body = [of("MIIEowIBAAKCAQEA", "kJ8sQz2LmP9vXw4R"), of("tY7bNc3HdkJ8sQz2", "LmP9vXw4RtY7bNc3")]
    key = "\n".join(["KEY = '''", of("-----BEGIN RSA PRI", "VATE KEY-----"), *body,
                     of("-----END RSA PRI", "VATE KEY-----"), "'''"])  # fmt: skip
    assert found(key) == body
    mask = SecretMask()
    hidden = mask.hide(key)
    assert hidden.count("\n") == key.count("\n")
    assert not any(line in hidden for line in body)
    escaped = json.dumps({"k": "\n".join(key.splitlines()[1:4])})
    assert not any(line in mask.hide(escaped) for line in body)
    json.loads(mask.hide(escaped))


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("API_KEY", True), ("apiKey", True), ("client_secret", True), ("db.password", True), ("AUTH", True),
        ("token_url", False), ("public_key", False), ("keyboard", False), ("author", False),
        ("password_hash", False), ("tokenizer", True), ("primary_key", False),
    ],
)  # fmt: skip
def test_names(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_placeholders_keep_code_valid_and_find_back() -> None:
    source = f"""
KEY = b'{SECRETS["Stripe"]}'
OTHER = f"{{KEY}}-{SECRETS["GitHub"]}"
URL = 'postgres://app:gT7x-2Lq@db/x'
CONFIG = {{"api_key": r"{RANDOM}"}}
again = '{RANDOM}'
"""
    mask = SecretMask()
    mask.learn(source)
    hidden = mask.hide(source)
    for secret in (SECRETS["Stripe"], SECRETS["GitHub"], "gT7x-2Lq", RANDOM):
        assert secret not in hidden
    before, after = ast.parse(source), ast.parse(hidden)
    kinds = [[type(node).__name__ for node in ast.walk(tree)] for tree in (before, after)]
    assert kinds[0] == kinds[1]
    values = [
        [type(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        for tree in (before, after)
    ]
    assert values[0] == values[1]
    assert mask.restore(hidden) == source
    assert mask.hide(hidden) == hidden
    assert mask.hide(f"E  assert '{RANDOM}'") in hidden + "E  assert 'AGENT_LS_SECRET_4'"


def test_what_was_only_seen_in_output_is_not_written() -> None:
    mask = SecretMask(values=["hunter2-of-the-env"])
    hidden = mask.hide(f"connecting with hunter2-of-the-env and {SECRETS['Slack']}")
    assert "hunter2" not in hidden
    assert SECRETS["Slack"] not in hidden
    edit = {"edits": [{"new": hidden}]}
    assert mask.restore_all(edit) == edit
    assert len(mask.left(edit)) == 2
    mask.learn(f"token = '{SECRETS['Slack']}'")
    assert len(mask.left(mask.restore_all(edit))) == 1


@given(st.text(max_size=200), st.sampled_from(sorted(SECRETS.values())), st.text(max_size=200))
def test_hiding_and_restoring_are_inverse(before: str, secret: str, after: str) -> None:
    text = f"{before} '{secret}' {after}"
    mask = SecretMask()
    mask.learn(text)
    hidden = mask.hide(text)
    assert secret not in hidden
    assert mask.restore(hidden) == text
