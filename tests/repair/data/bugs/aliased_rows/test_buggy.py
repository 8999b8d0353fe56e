from buggy import Board


def test_snapshot_stays():
    board = Board(2, 2)
    before = board.snapshot()
    board.put(0, 1, 7)
    assert before == [[0, 0], [0, 0]]


def test_put():
    board = Board(1, 2)
    board.put(0, 0, 5)
    assert board.snapshot() == [[5, 0]]
