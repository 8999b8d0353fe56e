from buggy import transpose


def test_square():
    assert transpose([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]


def test_wide():
    assert transpose([[1, 2, 3]]) == [[1], [2], [3]]
