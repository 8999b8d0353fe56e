from buggy import fibonacci


def test_some():
    assert fibonacci(7) == [0, 1, 1, 2, 3, 5, 8]


def test_none():
    assert fibonacci(0) == []
