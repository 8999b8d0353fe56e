from buggy import collatz_steps


def test_one():
    assert collatz_steps(1) == 0


def test_six():
    assert collatz_steps(6) == 8
