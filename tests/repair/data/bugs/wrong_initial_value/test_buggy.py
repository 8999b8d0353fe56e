from buggy import product


def test_some():
    assert product([2, 3, 4]) == 24


def test_nothing():
    assert product([]) == 1
