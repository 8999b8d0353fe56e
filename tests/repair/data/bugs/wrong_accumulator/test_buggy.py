from buggy import split_by_sign


def test_mixed():
    assert split_by_sign([1, -2, 3, 0]) == ([-2], [1, 3, 0])


def test_negative():
    assert split_by_sign([-1]) == ([-1], [])
