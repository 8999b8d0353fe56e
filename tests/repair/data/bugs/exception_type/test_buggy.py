from buggy import parse_port


def test_number():
    assert parse_port("8080") == 8080


def test_text():
    assert parse_port("http") == 80
