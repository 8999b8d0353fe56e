"""Do the index's definitions and references agree with other tools'? jedi for Python, ctags for the others.

    python -m venv jedi && jedi/bin/pip install jedi
    python benchmarks/index_agreement.py FOLDER... --jedi jedi/bin/python --ctags ctags --sample 120 --show 20

Folders hold real source (nothing is written to them). The sample is every n-th file of a language, so that
the same folders give the same sample. A definition agrees when both have its name on the same line (ctags:
or where one tool gives the head's first line). `ours confirmed` is the share of our definitions that the
other tool has, `theirs found` the share of its that we have, kinds that one tool leaves out on purpose aside.
Neither tool is the truth: `--show` lists the disagreements, to be looked at.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_ls.workspace.grammars import LANGUAGES, language_of, refined
from agent_ls.workspace.index.records import FileTags
from agent_ls.workspace.index.tags import tags

# ctags' name of the language, the kinds compared, and our kinds that it has no counterpart of.
CTAGS: dict[str, tuple[str, str, frozenset[str]]] = {
    # Of JavaScript, TypeScript and Kotlin it takes constants of functions for global ones.
    "javascript": ("JavaScript", "fcmgGSM", frozenset({"variable"})),
    "typescript": ("TypeScript", "fcigemnpGa", frozenset({"variable", "field"})),
    "go": ("Go", "fctvsimna", frozenset()),
    "rust": ("Rust", "nsifgtvMmeP", frozenset({"constant", "union"})),
    "java": ("Java", "acefgim", frozenset()),
    "c": ("C", "defgmstuv", frozenset()),
    "cpp": ("C++", "defgmstuvcnp", frozenset({"concept"})),
    "c_sharp": ("C#", "ceEfgimnpst", frozenset()),
    "ruby": ("Ruby", "cfmSCAa", frozenset()),
    "php": ("PHP", "cdfitv", frozenset({"enum", "member"})),
    "bash": ("Sh", "fa", frozenset({"variable"})),
    "kotlin": ("Kotlin", "icomT", frozenset({"field", "property", "variable", "member", "constructor"})),
}

Place = tuple[str, int]


class Agreement:
    """Counts of one comparison, and what the tools disagree on."""

    def __init__(self) -> None:
        self.both_ours = self.both_theirs = 0
        self.files = 0
        self.only_ours: list[str] = []
        self.only_theirs: list[str] = []
        self.kinds: Counter[str] = Counter()

    def row(self) -> dict[str, Any]:
        ours, theirs = self.both_ours + len(self.only_ours), self.both_theirs + len(self.only_theirs)
        return {
            "files": self.files,
            "ours": ours,
            "theirs": theirs,
            "confirmed": round(self.both_ours / ours, 4) if ours else None,
            "found": round(self.both_theirs / theirs, 4) if theirs else None,
        }


def sampled(folders: Iterable[Path], count: int) -> dict[str, list[Path]]:
    """At most `count` files of each language, spread evenly over the folders' sorted files."""
    files: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file() or ".min." in path.name:
                continue
            language = language_of(path.name)
            if language in LANGUAGES and language != "json" and 0 < path.stat().st_size < 300_000:
                language = refined(language, path.read_bytes())
                files.setdefault(language or "", []).append(path)
    return {
        language: [paths[index * len(paths) // count] for index in range(count)]
        if len(paths) > count
        else paths
        for language, paths in sorted(files.items())
    }


def with_ctags(ctags: str, language: str, paths: list[Path]) -> Agreement:
    name, kinds, unknown = CTAGS[language]
    reported = subprocess.run(
        [ctags, "--options=NONE", f"--languages={name}", f"--language-force={name}",
         f"--kinds-{name}={kinds}", "--output-format=json", "--fields=+nKs", "--sort=no", "-f", "-",
         "-L", "-"],
        input="\n".join(map(str, paths)), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    theirs: dict[str, list[dict[str, Any]]] = {}
    for line in reported.splitlines():
        tag = json.loads(line)
        # Prototypes outside classes are no definitions to us, and anonymous things have made-up names.
        if tag["kind"] == "prototype" and tag.get("scopeKind") not in ("class", "struct", "union"):
            continue
        if not re.match(r"__anon|Anonymous|<lambda>", tag["name"]):
            theirs.setdefault(tag["path"], []).append(tag)
    result = Agreement()
    for path in paths:
        found = tags(language, path.read_bytes(), references=False)
        compare_definitions(result, path, language, found, theirs.get(str(path), []), unknown)
    return result


def plain(name: str) -> str:
    """A name without what tools write differently: qualifiers, quotes, blanks, sigils."""
    name = name.replace(" ", "").strip("'\"`").lstrip("#$:@")
    operator = re.match(r"(?:.*::)?operator(\W.*)", name)
    if operator or not name[:1].isidentifier():
        return operator[1] if operator else name
    return name.replace("::", ".").replace("\\", ".").rpartition(".")[2]


def compare_definitions(
    result: Agreement,
    path: Path,
    language: str,
    found: FileTags,
    theirs: list[dict[str, Any]],
    unknown: frozenset[str],
) -> None:
    result.files += 1
    ours: set[Place] = set()
    for it in found.definitions:
        ours |= {(plain(it.name), line) for line in range(it.line, min(it.name_line, it.line + 12) + 1)}
        ours.add((plain(it.name), it.name_line))
    places = {(plain(tag["name"]), tag["line"]) for tag in theirs}
    near = {(name, line + shift) for name, line in places for shift in (-1, 0, 1)}
    for it in found.definitions:
        if it.kind in unknown:
            continue
        if any((plain(it.name), line) in near for line in (it.line, it.name_line)):
            result.both_ours += 1
        else:
            result.only_ours.append(f"{path}:{it.name_line}: {it.kind} {it.qualified}")
            result.kinds[f"ours {it.kind}"] += 1
    for tag in theirs:
        at = (plain(tag["name"]), tag["line"])
        if any((at[0], at[1] + shift) in ours for shift in (-1, 0, 1)):
            result.both_theirs += 1
        else:
            result.only_theirs.append(f"{path}:{tag['line']}: {tag['kind']} {tag['name']}")
            result.kinds[f"theirs {tag['kind']}"] += 1


def with_jedi(python: str, paths: list[Path]) -> dict[str, Agreement]:
    script = Path(__file__).with_name("_jedi_names.py")
    output = subprocess.run(
        [python, str(script)], input="\n".join(map(str, paths)), capture_output=True, text=True, check=True
    ).stdout
    results = {name: Agreement() for name in ("definitions", "references", "calls", "uses in file")}
    for line in output.splitlines():
        theirs = json.loads(line)
        if "error" in theirs:
            print(f"jedi: {theirs['path']}: {theirs['error']}", file=sys.stderr)
            continue
        path = Path(theirs["path"])
        found = tags("python", path.read_bytes())
        references = {
            (it.name, it.line, it.column): it.kind for it in found.references if it.kind != "import"
        }
        calls = {place for place, kind in references.items() if kind == "call"}
        decorators = {
            place for place in calls if path_line(path, place[1]).lstrip().startswith("@")
        }  # called by the language; jedi knows them as plain uses
        compare(
            results["definitions"], path, {(it.name, it.name_line, it.column) for it in found.definitions},
            {(name, line, column) for name, line, column, _ in theirs["definitions"]},
        )  # fmt: skip
        used = {(name, line, column) for name, line, column, _ in theirs["references"]}
        compare(results["references"], path, set(references), used)
        called = {(name, line, column) for name, line, column, is_call in theirs["references"] if is_call}
        compare(results["calls"], path, calls - decorators, called - decorators)
        everywhere = {(it.name, it.line, it.column) for it in found.references}
        everywhere |= {(it.name, it.name_line, it.column) for it in found.definitions}
        within = {(name, line, column) for name, places in theirs["within"] for line, column in places}
        compare(results["uses in file"], path, everywhere & within, within)
    return results


_LINES: dict[Path, list[str]] = {}


def path_line(path: Path, line: int) -> str:
    if path not in _LINES:
        _LINES[path] = path.read_text("utf-8", "replace").split("\n")
    return _LINES[path][line - 1]


def compare(result: Agreement, path: Path, ours: set[Any], theirs: set[Any]) -> None:
    result.files += 1
    result.both_ours += len(ours & theirs)
    result.both_theirs += len(ours & theirs)
    result.only_ours += [f"{path}:{line}:{column}: {name}" for name, line, column in sorted(ours - theirs)]
    result.only_theirs += [f"{path}:{line}:{column}: {name}" for name, line, column in sorted(theirs - ours)]


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "| compared | files | ours | theirs | ours confirmed | theirs found |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        shares = [("–" if row[key] is None else f"{100 * row[key]:.1f} %") for key in ("confirmed", "found")]
        lines.append(f"| {name} | {row['files']} | {row['ours']} | {row['theirs']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jedi", metavar="PYTHON", help="an interpreter that has jedi")
    parser.add_argument("--ctags", default="ctags", help="universal-ctags (default: from PATH)")
    parser.add_argument("--language", action="append", help="only these (may be repeated)")
    parser.add_argument("--sample", type=int, default=120, help="files per language")
    parser.add_argument("--show", type=int, default=0, help="disagreements to list per comparison")
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    options = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    for language, paths in sampled(options.folders, options.sample).items():
        if options.language and language not in options.language:
            continue
        compared: dict[str, Agreement] = {}
        if language == "python" and options.jedi:
            compared = {
                f"python {what}, jedi": found for what, found in with_jedi(options.jedi, paths).items()
            }
        elif language in CTAGS:
            compared = {f"{language}, ctags": with_ctags(options.ctags, language, paths)}
        for name, agreement in compared.items():
            rows[name] = agreement.row()
            if options.show:
                print(f"\n## {name}: {dict(agreement.kinds.most_common())}")
                for title, entries in (
                    ("only ours", agreement.only_ours),
                    ("only theirs", agreement.only_theirs),
                ):
                    step = max(1, len(entries) // options.show)
                    print(f"{title} ({len(entries)}):")
                    print("\n".join(f"  {entry}" for entry in entries[::step][: options.show]))
    print("\n" + table(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
