import pytest
from buggy import final_price


@pytest.mark.parametrize("price, percent, expected", [(100, 20, 80), (100, 95, 10), (50, -5, 50), (50, 0, 50)])
def test_final_price(price, percent, expected):
    assert final_price(price, percent) == expected
