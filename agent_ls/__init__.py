"""A coding agent that works on a branch in a copy of your repository and proves its fix."""

__version__ = "0.1.0"
