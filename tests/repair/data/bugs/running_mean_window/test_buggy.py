from buggy import running_means


def test_each_window():
    assert running_means([1, 3, 5, 7], 2) == [2, 4, 6]


def test_whole():
    assert running_means([2, 4], 2) == [3]


def test_too_short():
    assert running_means([1], 2) == []
