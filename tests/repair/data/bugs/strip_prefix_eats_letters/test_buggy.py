from buggy import without_prefix


def test_prefix():
    assert without_prefix("data_points") == "points"


def test_other():
    assert without_prefix("points") == "points"
