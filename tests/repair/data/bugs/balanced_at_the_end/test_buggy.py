from buggy import balanced


def test_open():
    assert not balanced("[[]")


def test_closed():
    assert balanced("[][]")


def test_early():
    assert not balanced("][")
