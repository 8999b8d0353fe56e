from buggy import initials


def test_lower():
    assert initials("ada lovelace") == "AL"


def test_upper():
    assert initials("Grace Hopper") == "GH"
