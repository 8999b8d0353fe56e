"""Definitions below compound statements and in functions."""
import sys

if sys.platform == "win32":
    LINE = "\r\n"

    class Console:
        width = 80
elif sys.version_info > (3, 12):
    def newer(): ...
else:
    LINE = "\n"

try:
    from fast import loads
except (ImportError, ValueError) as error:
    loads = None
finally:
    done = True

for number in range(3):
    last = number
    def per_number(): return number

while False:
    with open("x") as file:
        def deep(): pass

match sys.argv:
    case [one]:
        chosen = one
    case _:
        def otherwise(): pass


def factory(base, *args, key=None, **options):
    """ Make a class.

    import os is not an import here, nor is
    def this a function.
    """
    import json
    with key:
        if base:
            class Made(base):
                field = 1

                def method(self):
                    from x.y import z
                    total = [item for item in self.field if (seen := item)]
                    return lambda left, right: left + right + z(total, seen)
    async def later(): pass
    text = "class Not: pass"
    return Made


def plain(a):
    b = a
    return b


def defective(a): return a  # def not_one
ünïcode = naïve = 1; after = ünïcode
ünïcode.method(after)
