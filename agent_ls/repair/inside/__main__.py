"""Starts the server under its folder's name, without leaving that folder importable."""

# ruff: noqa: PTH100, PTH119, PTH120

import importlib
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.dirname(here)
importlib.import_module(os.path.basename(here) + ".serve").main()
