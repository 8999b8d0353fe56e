import pytest
from buggy import celsius


@pytest.mark.parametrize("f, c", [(32, 0), (212, 100), (-40, -40)])
def test_celsius(f, c):
    assert celsius(f) == pytest.approx(c)
