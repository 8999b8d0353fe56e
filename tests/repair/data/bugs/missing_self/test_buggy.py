from buggy import Counter


def test_counts():
    counter = Counter()
    counter.hit()
    counter.hit()
    assert counter.count == 2


def test_returns():
    assert Counter().hit() == 1
