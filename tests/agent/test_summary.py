"""The hand-over's short diffs."""

from __future__ import annotations

import pytest

from agent_ls.agent.handover import short_diff

TWO = """diff --git a/a.py b/a.py
index 111..222 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@ def f():
 same
-old
+new
diff --git a/b.md b/b.md
new file mode 100644
--- /dev/null
+++ b/b.md
@@ -0,0 +1,2 @@
+++ not a header
+--- nor this
\\ No newline at end of file
"""


@pytest.mark.parametrize(
    ("diff", "most", "lines"),
    [
        ("", 8, []),
        (TWO, 8, ["+++ b/a.py", "-old", "+new", "+++ b/b.md", "+++ not a header", "+--- nor this"]),
        (TWO, 6, ["+++ b/a.py", "-old", "+new", "+++ b/b.md", "+++ not a header", "+--- nor this"]),
        (TWO, 3, ["+++ b/a.py", "-old", "… 4 more lines"]),
        ("diff --git a/x b/x\ndeleted file mode 100644\nBinary files a/x and /dev/null differ\n", 8, []),
    ],
)
def test_short_diff(diff: str, most: int, lines: list[str]) -> None:
    assert short_diff(diff, most) == lines
