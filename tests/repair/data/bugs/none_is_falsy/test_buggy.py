from buggy import Gauge


def test_zero_is_a_limit():
    assert Gauge(1, 0).exceeded()


def test_no_limit():
    assert not Gauge(1).exceeded()


def test_below():
    assert not Gauge(1, 2).exceeded()


def test_above():
    assert Gauge(3, 2).exceeded()
