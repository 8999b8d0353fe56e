from buggy import mean_of_known


def test_gap():
    assert mean_of_known([1, None, 3]) == 2


def test_plain():
    assert mean_of_known([4]) == 4


def test_zero_counts():
    assert mean_of_known([0, 4]) == 2
