from buggy import colour_code


def test_plain():
    assert colour_code("red") == 1


def test_blanks():
    assert colour_code(" green ") == 2


def test_case():
    assert colour_code("Blue") == 3
