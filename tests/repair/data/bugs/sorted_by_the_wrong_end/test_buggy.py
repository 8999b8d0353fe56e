from buggy import podium


def test_best_first():
    assert podium({"a": 1, "b": 9, "c": 5, "d": 7}) == ["b", "d", "c"]


def test_few():
    assert podium({"x": 1}) == ["x"]
