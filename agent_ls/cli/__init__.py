"""The command line: parse, call, render. The only room that prints; it has no logic of its own."""
