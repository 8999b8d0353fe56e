"""Places where a test puts something in place of the code: patches, stubs, spies with canned answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from agent_ls.guard.syntax import Expr, dotted, substitute

_DOUBLES = re.compile(
    r"(?:^|\.)(?:Mock|MagicMock|AsyncMock|PropertyMock|NonCallableMock|create_autospec|SimpleNamespace|fn|stub|fake"
    r"|instance_double|class_double|double|mock|spy_never|createStubInstance|mockDeep|mock<.*>"
    r"|new Mock(?:<.*>)?"
    r"|Substitute\.For(?:<.*>)?|A\.Fake(?:<.*>)?|automock)$"
)
_CANNED = {"mockReturnValue", "mockResolvedValue", "mockImplementation", "mockReturnValueOnce",
    "mockRejectedValue",
           "returns", "resolves", "callsFake", "thenReturn", "and_return", "Returns", "ReturnsAsync",
           "mockImplementationOnce", "mockResolvedValueOnce", "and_wrap_original"}  # fmt: skip


@frozen
class Mock:
    """`target` is the name that is replaced ("module.function"), `name` its last part, `owner` what
    comes before."""

    target: str
    name: str
    owner: str
    line: int
    canned: bool
    module: bool = False


def mocks_in(expr: Expr, env: Mapping[str, Expr]) -> list[Mock]:
    """Replacements made by one statement; `expr` may be an assignment's (target, value)."""
    found = []
    if expr.op == "other" and len(expr.args) == 2 and not expr.name:
        target, value = expr.args
        if target.op == "attr" and _is_double(value):
            owner = (
                dotted(substitute(target.args[0], env))
                if target.args[0].op == "name"
                else dotted(target.args[0])
            )
            owned = env.get(target.args[0].name) if target.args[0].op == "name" else None
            double = (owned is not None and _is_double(owned)) or "mock" in target.text.lower()
            own = target.text.startswith(("self.", "this."))
            if not double and not own and target.name not in ("return_value", "side_effect"):
                found.append(Mock(target.text, target.name, owner, expr.line or target.line, True))
    for part in expr.walk():
        if part.op == "call":
            made = _by_call(part)
            if made is not None:
                found.append(made)
    return found


def constructed(value: Expr) -> bool:
    """Is it a new object, or what a function of the project returns?"""
    return (
        value.op == "call"
        and re.search(r"(?:^|\.)(?:new )?[A-Z]\w*(?:<.*)?$|\.new$", value.callee) is not None
    )


def is_double(value: Expr) -> bool:
    """A mock, a stub, or an object with canned answers."""
    if value.op == "dict":
        return any(pair.op == "pair" and pair.args[1].op == "func" for pair in value.args)
    return value.op != "func" and _is_double(value)


def _is_double(value: Expr) -> bool:
    while value.op == "call" and value.args[0].op == "attr" and value.args[0].name in _CANNED:
        value = value.args[0].args[0]
    if value.op == "func":
        return True
    return value.op == "call" and _DOUBLES.search(value.callee) is not None


def _by_call(call: Expr) -> Mock | None:
    callee, args = call.callee, call.positional
    last = callee.rpartition(".")[2]
    canned = len(args) > 1 or any(
        call.keyword(word) is not None for word in ("return_value", "side_effect", "new")
    )
    if (
        last in ("patch", "setattr")
        and args
        and isinstance(args[0].value, str)
        and (last == "patch" or "monkeypatch" in callee or callee.startswith("mp."))
    ):
        target = str(args[0].value)
        return Mock(target, target.rpartition(".")[2], target.rpartition(".")[0], call.line, True)
    if (
        last in ("object", "setattr")
        and len(args) >= 2
        and isinstance(args[1].value, str)
        and re.search(r"patch|mocker|mp\.", callee)
    ):
        owner = dotted(args[0])
        return Mock(f"{owner}.{args[1].value}", str(args[1].value), owner, call.line, True)
    if (
        callee in ("jest.mock", "vi.mock", "jest.doMock", "vi.doMock", "mock.module")
        and args
        and isinstance(args[0].value, str)
    ):
        path = str(args[0].value)
        return Mock(path, path.rpartition("/")[2], path, call.line, canned, module=True)
    replaced = re.search(r"(?:^|\.)mock\.method$|^sinon\.(?:stub|replace)$", callee)
    if replaced and len(args) >= 2 and isinstance(args[1].value, str):
        owner = dotted(args[0])
        return Mock(f"{owner}.{args[1].value}", str(args[1].value), owner, call.line, True)
    if last in _CANNED:
        inner = call.args[0].args[0] if call.args[0].op == "attr" else None
        if inner is not None and inner.op == "call":
            spy = inner.callee
            if re.search(r"(?:^|\.)(?:spyOn|stub|method)$", spy) and len(inner.positional) >= 2:
                owner, label = dotted(inner.positional[0]), str(inner.positional[1].value)
                return Mock(f"{owner}.{label}", label, owner, call.line, True)
            if (
                re.search(r"(?:^|\.)(?:when|doReturn)$", spy)
                and inner.positional
                and inner.positional[0].op == "call"
            ):
                target = inner.positional[0].callee
                return Mock(target, target.rpartition(".")[2], target.rpartition(".")[0], call.line, True)
    if last == "to" and call.args[0].op == "attr" and args:  # allow(x).to receive(:y).and_return(z)
        base = call.args[0].args[0]
        text = re.search(r"receive\(':(\w+[?!]?)'\)", args[0].text)
        if (
            base.op == "call"
            and base.callee in ("allow", "allow_any_instance_of")
            and base.positional
            and text
        ):
            owner = dotted(base.positional[0])
            return Mock(f"{owner}.{text.group(1)}", text.group(1), owner, call.line, True)
    if last in ("stub_const",) and args:
        return Mock(args[0].text, args[0].text, "", call.line, True)
    return None
