from buggy import collect


def test_new_bag():
    assert collect(1) == [1]
    assert collect(2) == [2]


def test_given_bag():
    assert collect(3, [1]) == [1, 3]
