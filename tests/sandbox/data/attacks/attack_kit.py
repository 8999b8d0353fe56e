"""What the attacks know of the host (facts.json, written by the test that runs them), and how they report."""

import contextlib
import ctypes
import json
import os

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "facts.json")) as _file:
    FACTS = json.load(_file)

libc = ctypes.CDLL(None, use_errno=True)
namespaces_only = pytest.mark.skipif(FACTS["mode"] != "bwrap", reason="documented: Landlock can't keep this apart")


def refused(attempt, *arguments, **named):
    """The attempt must raise OSError; what it returns instead is the hole."""
    try:
        result = attempt(*arguments, **named)
    except OSError:
        return
    pytest.fail(f"not refused: {attempt} {arguments} -> {result!r}")


def in_child(function):
    """Run `function` in a forked child; its exit status: 0 when it returned falsely (contained)."""
    pid = os.fork()
    if pid == 0:
        code = 99
        with contextlib.suppress(BaseException):
            code = 1 if function() else 0
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status


def call(name, *arguments):
    """A function of the C library; raises OSError."""
    result = getattr(libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
