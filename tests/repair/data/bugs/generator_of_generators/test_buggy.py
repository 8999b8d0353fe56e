from buggy import leaves


def test_nested():
    assert list(leaves([1, [2, [3]], 4])) == [1, 2, 3, 4]


def test_flat():
    assert list(leaves([1, 2])) == [1, 2]
