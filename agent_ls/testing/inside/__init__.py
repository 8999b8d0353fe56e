"""What runs inside the project's interpreter: Python 3.8+, standard library (and pytest) only.

The runner copies this package into the session's scratch folder as `agent_ls_inside`.
"""
