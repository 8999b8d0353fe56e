from buggy import clock


def test_two_digits():
    assert clock(75) == "1:15"


def test_leading_zero():
    assert clock(65) == "1:05"
