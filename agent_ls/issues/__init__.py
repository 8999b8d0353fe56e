"""Where tasks come from: local files, GitHub, GitLab. All text is untrusted and comes out sanitised."""

from agent_ls.issues.find import resolve_issue
from agent_ls.issues.text import from_file, from_text, sanitise

__all__ = ["from_file", "from_text", "resolve_issue", "sanitise"]
