"""The environment a test process gets: an allow-list, and never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

_ALLOWED = frozenset(
    """PATH HOME LANG LANGUAGE TZ TERM TMPDIR USER LOGNAME SHELL COLUMNS LINES
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV
    PYTHONPATH PYTHONHASHSEED PYTHONWARNINGS PYTHONUTF8 PYTHONIOENCODING PYTHONDEVMODE PYTHONASYNCIODEBUG
    PYTHONUNBUFFERED PYTHONFAULTHANDLER PYTHONOPTIMIZE
    CI NODE_ENV NODE_PATH GOPATH GOFLAGS GOROOT CARGO_HOME RUSTUP_HOME JAVA_HOME
    LD_LIBRARY_PATH SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    SOURCE_DATE_EPOCH DJANGO_SETTINGS_MODULE HYPOTHESIS_PROFILE PYTEST_DISABLE_PLUGIN_AUTOLOAD
    OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS MPLBACKEND
    QT_QPA_PLATFORM""".split()  # noqa: SIM905
)
_ALLOWED_PREFIXES = ("LC_", "SETUPTOOLS_SCM_PRETEND_VERSION")
_SECRET = re.compile(
    r"(^|_)(API_?)?(KEY|KEYS|APIKEY|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|AUTH"
    r"|COOKIE|PAT)(_|$)|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_?KEY|ACCESS_?KEY",
    re.IGNORECASE,
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name probably holds a secret."""
    return _SECRET.search(name) is not None


def scrubbed_env(pass_env: Iterable[str] = (), source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a process that runs the project's code.

    `source` (default: ours) filtered to harmless names, plus the names in `pass_env`. A name that
    looks like a secret is left out even when a pattern or `pass_env` allows it, and so is every
    `GIT_*` variable (one of them could point git at another repository).
    """
    source = os.environ if source is None else source
    extra = frozenset(pass_env)
    kept = {
        name: value
        for name, value in source.items()
        if (name in _ALLOWED or name in extra or name.startswith(_ALLOWED_PREFIXES))
        and not looks_secret(name)
        and not name.startswith(("GIT_", "AGENT_LS_"))
    }
    kept.setdefault("PATH", os.defpath)
    kept.setdefault("LANG", "C.UTF-8")
    kept["CI"] = kept.get("CI") or "1"
    return kept
