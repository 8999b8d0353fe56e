"""What of our environment a test process gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.sandbox.environment import looks_secret, scrubbed_env

SECRETS = """
ANTHROPIC_API_KEY OPENAI_API_KEY GITHUB_TOKEN GH_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID
DB_PASSWORD PGPASSWORD PASSWORD MY_CREDENTIALS apikey npm_config__authToken SESSION_COOKIE NPM_TOKEN
SSH_KEY TWINE_PASSWORD PIP_PASS PRIVATE_KEY LC_TOKEN GITLAB_PAT
""".split()  # noqa: SIM905
HARMLESS = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "KEYBOARD", "MONKEY", "PATTERN", "AUTHOR_NAME", "COMPASS"]


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_never_pass(name: str) -> None:
    assert looks_secret(name)
    assert name not in scrubbed_env((name,), {name: "x"})


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_names_are_not_taken_for_secrets(name: str) -> None:
    assert not looks_secret(name)
    assert scrubbed_env((name,), {name: "x"})[name] == "x"


def test_only_the_allow_list_and_what_was_asked_for_pass() -> None:
    source = {
        "PATH": "/bin", "LC_CTYPE": "C", "RANDOM": "1", "MINE": "2", "GIT_DIR": "/x", "GIT_INDEX_FILE": "/y",
        "AGENT_LS_MODEL": "m", "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_X": "1.0", "SSH_AUTH_SOCK": "/s",
        "LD_PRELOAD": "/evil.so", "PYTHONSTARTUP": "/x", "DOCKER_HOST": "tcp://x",
    }  # fmt: skip
    assert scrubbed_env(("MINE", "GIT_DIR"), source) == {
        "PATH": "/bin",
        "LC_CTYPE": "C",
        "MINE": "2",
        "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_X": "1.0",
        "LANG": "C.UTF-8",
        "CI": "1",
    }


@given(st.dictionaries(st.text(min_size=1), st.text()), st.lists(st.text()))
def test_whatever_the_environment_no_secret_name_comes_out(source: dict[str, str], asked: list[str]) -> None:
    result = scrubbed_env([*asked, *source], source)
    assert not any(looks_secret(name) or name.startswith("GIT_") for name in result)
    assert result["PATH"]
