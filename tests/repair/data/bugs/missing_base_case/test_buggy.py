from buggy import digits_sum


def test_one_digit():
    assert digits_sum(7) == 7


def test_many():
    assert digits_sum(9042) == 15


def test_zero():
    assert digits_sum(0) == 0
