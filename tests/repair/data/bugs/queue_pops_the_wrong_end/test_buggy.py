from buggy import PrintQueue


def test_order():
    queue = PrintQueue()
    queue.add("a")
    queue.add("b")
    assert queue.next_job() == "a"
    assert queue.next_job() == "b"


def test_empty():
    assert PrintQueue().next_job() is None
