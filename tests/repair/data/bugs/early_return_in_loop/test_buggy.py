from buggy import all_even


def test_odd_last():
    assert all_even([2, 4, 5]) is False


def test_all():
    assert all_even([2, 4]) is True


def test_odd_first():
    assert all_even([1, 2]) is False
