import os

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(autouse=True)
def _at_home():
    os.chdir(HERE)
    yield
    os.chdir(HERE)
