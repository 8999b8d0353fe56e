"""Expected data beside the tests: snapshots, golden files, and tests that write what they compare with."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import PurePosixPath

from agent_ls.guard.lines import new_lines, text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.protected import Finding
from agent_ls.guard.world import World
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_config, is_test_path

_PLACES = re.compile(
    r"(?:^|/)(?:__snapshots__|snapshots?|golden|goldens|approved|expected|baselines?|cassettes?|fixtures?|testdata|test_data|data|resources|refs?"
    r"|examples?)(?:/|_)|\.snap$|\.approved\.\w+$|\.golden$|\.snapshot$|\.ambr$|\.expected$|\.out$",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"\.write_text\(|\.write_bytes\(|writeFileSync\(|writeFile\(|os\.WriteFile\(|ioutil\.WriteFile\(|fs::write\(|File\.write\(|Files\.write\w*\("
    r"|File\.WriteAll\w+\(|\.dump\([^)]*open\(|json\.dump\(|open\([^)]*['\"]w[b+]*['\"]|IO\.write\(|copyfile\(|copy\("
)
_EXPECTED = re.compile(r"golden|snapshot|snap\b|expected|approved|baseline|reference", re.IGNORECASE)
_ASKED = re.compile(
    r"update|UPDATE|regen|REGEN|record|RECORD|getoption|environ|getenv|flag\.|process\.env|bless|BLESS|rewrite|overwrite",
    re.IGNORECASE,
)
_LITERAL_ARGUMENT = re.compile(r"write_(?:text|bytes)\(\s*[bfr]?['\"]|write\w*\([^,]+,\s*['\"`]")
MAX_DATA = 400_000


def review_golden(old: World, new: World, changed: list[str]) -> list[Finding]:
    """Findings about expected data that changed or is written by the test itself."""
    found = []
    for path in changed:
        language = language_of(path)
        if is_test_path(path) and (language is None or language == "json") and not is_test_config(path):
            found += _data(old, new, path)
        elif is_test_path(path):
            found += _self_healing(path, text_of(old, path), text_of(new, path))
    return found


def _data(old: World, new: World, path: str) -> list[Finding]:
    name = PurePosixPath(path).name
    if (
        path not in old.all_paths
        or name.lower().startswith(("readme", "license", "changelog", ".git"))
        or name.endswith((".md", ".rst"))
    ):
        return []
    if not _PLACES.search(path) and not name.endswith(
        (".json", ".txt", ".yml", ".yaml", ".csv", ".xml", ".html")
    ):
        return []
    before = old.tree.read(path) or b""
    if path not in new.all_paths:
        kept = any(
            (new.tree.read(other) or b"") == before
            for other in new.all_paths
            if PurePosixPath(other).name == name
        )
        if kept or _written_out(old, new, before):
            return []
        return [
            Finding(
                "expected-data-deleted", "review", path, 1, f"{name}, which tests compare with, was deleted"
            )
        ]
    after = new.tree.read(path) or b""
    if len(after) > MAX_DATA or not before.strip():
        return []
    one, two = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
    if _same_data(one, two, name):
        return []
    was, now = _cases(one, name), _cases(two, name)
    if now < was:
        severity: Severity = "block" if now * 2 < was else "review"
        return [Finding("cases-removed", severity, path, 1, f"{name} holds {now} cases instead of {was}")]
    gone = Counter(line.rstrip() for line in one.splitlines() if line.strip()) - Counter(
        line.rstrip() for line in two.splitlines()
    )
    line = next((number for number, _ in new_lines(one, two, comments=True)), 1)
    if not gone and name.endswith((".snap", ".ambr", ".csv", ".txt")) and _in_order(one, two):
        return []  # only additions: new snapshots
    text = next(iter(gone), "")
    return [
        Finding(
            "expected-data-changed",
            "review",
            path,
            line,
            f"{name}, which tests compare with, was changed",
            before=text[:200],
        )
    ]


def _written_out(old: World, new: World, data: bytes) -> bool:
    """Do tests that changed hold the words of a deleted file now?"""
    words = set(re.findall(r"\w+", "\n".join(data.decode("utf-8", "replace").splitlines()[1:])))
    if not words or len(words) > 400:
        return False
    for path in sorted(new.all_paths):
        if is_test_path(path) and language_of(path) not in (None, "json"):
            text = new.tree.read(path) or b""
            if text != (old.tree.read(path) if path in old.all_paths else None):
                have = set(re.findall(r"\w+", text.decode("utf-8", "replace").replace("\\n", " ")))
                if len(words & have) >= 0.9 * len(words):
                    return True
    return False


def _in_order(one: str, two: str) -> bool:
    """Are the lines of one text in the other one, in the same order?"""
    rest = iter([line.rstrip() for line in two.splitlines()])
    return all(line.rstrip() in rest for line in one.splitlines() if line.strip())


def _same_data(one: str, two: str, name: str) -> bool:
    if [line.rstrip() for line in one.splitlines()] == [line.rstrip() for line in two.splitlines()]:
        return True
    if name.endswith(".snap"):  # the head names the tool, the names of tests are joined in other ways
        sides = [re.sub(r"(?m)^//.*\n|(?<=\w) >(?= )", "", text) for text in (one, two)]
        return sides[0] == sides[1]
    if name.endswith(".json"):
        try:
            return bool(json.loads(one) == json.loads(two))
        except ValueError:
            return False
    return False


def _cases(text: str, name: str) -> int:
    """How many cases a data file holds, where it is a list of them."""
    if name.endswith(".json"):
        try:
            value = json.loads(text or "null")
        except ValueError:
            return 0
        if isinstance(value, dict):
            value = next((inner for inner in value.values() if isinstance(inner, list)), None)
        return (
            len(value) if isinstance(value, list) and (not value or isinstance(value[0], list | dict)) else 0
        )
    if name.endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
        return sum(1 for line in text.splitlines() if line.strip())
    return 0


def _self_healing(path: str, before: str, after: str) -> list[Finding]:
    """A test that newly writes the file it compares with."""
    found = []
    lines = after.splitlines()
    for number, line in new_lines(before, after):
        if not _WRITES.search(line) or not before:
            continue
        around = "\n".join(lines[max(0, number - 8) : number + 3])
        target = re.search(r"([\w.]+)\.write_(?:text|bytes)\(|\(\s*([\w.]+)\s*,", line)
        word = next((g for g in target.groups() if g), "") if target is not None else ""
        read = word and re.search(
            rf"{re.escape(word)}\.read_|(?:read\w*|Read\w*|open|load)\(\s*{re.escape(word)}\b", after
        )
        origin = re.search(rf"(?m)^.*\b{re.escape(word)}\s*:?=.*$", after) if word else None
        named = _EXPECTED.search(line) or (origin is not None and _EXPECTED.search(origin.group()))
        written = re.search(r"write_(?:text|bytes)\(\s*([a-z]\w*)", line)
        both = rf"\b{written.group(1)}\b.*\b{re.escape(word)}\.read" if written is not None and word else "$^"
        compared = re.search(rf"(?:assert|expect|[eE]quals?)\b.*{both}", after)
        if (named or compared) and read and not _ASKED.search(around) and not _LITERAL_ARGUMENT.search(line):
            text = f"the test writes the file that it compares with: {line.strip()[:100]}"
            found.append(
                Finding("expected-written-by-test", "block", path, number, text, after=line.strip()[:200])
            )
    return found
