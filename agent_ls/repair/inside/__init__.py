"""Fork server that runs tests against candidate patches. Runs in the PROJECT's interpreter.

Self-contained on purpose: standard library (Python 3.8+) and, for pytest suites, the project's own
pytest. The folder is copied next to its configuration file and started as `python <folder> config.json`.

`fast` mode collects the tests once and then forks for every candidate; the child exchanges the code
object of the one changed function in every live function object, which is exact as long as that
function was not called while the modules were imported (a profile hook watches for that; then the
answer is `slow`). `slow` mode keeps only pytest and third-party modules warm, and each child imports
the project afresh with the candidate's source in place of the file's.

Protocol: JSON lines over two FIFOs. Every candidate runs in its own child, so no state can leak.
"""
