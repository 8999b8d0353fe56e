from buggy import Node, depth


def test_right_heavy():
    assert depth(Node(1, None, Node(2, None, Node(3)))) == 3


def test_left():
    assert depth(Node(1, Node(2))) == 2


def test_none():
    assert depth(None) == 0
