from buggy import price


def test_toddler():
    assert price(3) == 0


def test_first_paying_year():
    assert price(6) == 5


def test_adult():
    assert price(18) == 10


def test_teenager():
    assert price(17) == 5
