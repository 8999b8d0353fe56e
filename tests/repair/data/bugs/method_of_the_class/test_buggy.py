from buggy import Cart


def cart(*prices):
    made = Cart()
    for price in prices:
        made.add(price)
    return made


def test_shipping():
    assert cart(10).total() == 15


def test_free():
    assert cart(40, 20).total() == 60
