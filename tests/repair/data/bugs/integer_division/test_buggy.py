from buggy import mean


def test_fraction():
    assert mean([1, 2]) == 1.5


def test_whole():
    assert mean([2, 4]) == 3
