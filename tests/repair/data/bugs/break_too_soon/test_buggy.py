from buggy import numbers_in


def test_skips():
    assert numbers_in(["1", "x", "2"]) == [1, 2]


def test_none():
    assert numbers_in(["x"]) == []
