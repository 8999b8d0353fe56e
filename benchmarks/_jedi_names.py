"""Names as jedi sees them, for index_agreement.py: runs in an environment that has jedi, not in ours.

In: paths, one a line. Out: one JSON object a line: path, definitions [name, line, column, kind],
references [name, line, column, is it called], within: where jedi finds some of its functions.
"""

import json
import sys
from pathlib import Path

import jedi

PER_FILE = 4  # definitions whose uses jedi looks up; each costs it a while
SYMBOLS = {"classdef": "class", "funcdef": "function", "async_funcdef": "function", "expr_stmt": "variable"}


def kind_of(leaf):
    """The kind of symbol that a name defines; "" for a name that is bound but no symbol; None for a use."""
    node = leaf.get_definition(import_name_always=True)
    if node is None or (node.type in ("funcdef", "classdef") and node.name is not leaf):
        return None if node is None else ""
    kind = SYMBOLS.get(node.type, "")
    if kind != "variable":
        return kind
    if leaf.parent.type in ("trailer", "power", "atom_expr") and leaf.get_previous_leaf() == ".":
        return None  # an attribute that is set: as much a use as one that is read
    around = node.parent
    while around is not None and around.type not in ("funcdef", "classdef", "file_input", "lambdef"):
        around = around.parent
    return kind if around is not None and around.type in ("classdef", "file_input") else ""


def is_called(leaf):
    following = leaf.get_next_leaf()
    return following is not None and following.value == "(" and following.parent.type == "trailer"


def names_of(path):
    script = jedi.Script(Path(path).read_text("utf-8"), path=path)
    definitions, references, looked_up = [], [], []
    leaves = script._module_node.get_used_names()
    for name, found in sorted(leaves._dict.items() if hasattr(leaves, "_dict") else leaves.items()):
        for leaf in found:
            line, column = leaf.start_pos
            imported = leaf.get_definition(import_name_always=True)
            if imported is not None and imported.type in ("import_name", "import_from"):
                continue
            kind = kind_of(leaf)
            if kind:
                definitions.append([name, line, column + 1, kind])
                if kind in ("class", "function") and leaf.parent.parent.type in ("file_input", "decorated"):
                    looked_up.append((name, line, column))
            elif kind is None:
                references.append([name, line, column + 1, is_called(leaf)])
    within = []
    for name, line, column in looked_up[:: max(1, len(looked_up) // PER_FILE)][:PER_FILE]:
        places = [
            [it.line, it.column + 1]
            for it in script.get_references(line, column, scope="file")
            if (it.line, it.column) != (line, column)
        ]
        within.append([name, places])
    return {"definitions": definitions, "references": references, "within": within}


for given in sys.stdin.read().splitlines():
    try:
        result = names_of(given)
    except Exception as error:
        result = {"error": repr(error)}
    print(json.dumps({"path": given, **result}), flush=True)
