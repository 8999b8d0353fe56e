from buggy import is_weekend


def test_saturday():
    assert is_weekend("Saturday")


def test_sunday():
    assert is_weekend("Sunday")


def test_monday():
    assert not is_weekend("Monday")
