import os, sys as s
import a.b.c
from . import x
from ..p.q import (a as b,  # c
   c)
from m import *

LIMIT: int = 3
A, B = 1, 2
c = d = 4

@cache
@wraps(x)
def f(a,  # the a
      b=(1, 2)) -> int:
    """Do it.

    More."""
    local = 1

    def inner():
        pass
    class L:
        z = 3
        def zz(self): pass
    if x:
        import lazy

    return local


class A(B, metaclass=M):
    'Doc.'
    y = 2
    async def m(self): return 1

    class C:
        @property
        def p(self):
            return lambda: 1

try:
    import q
except ImportError:
    q = None
else:
    if True:
        def g(): ...
type Pair[T] = tuple[T, T]
type P = int
f(LIMIT, k=A).foo.bar()
