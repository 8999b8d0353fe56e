class Board:
    """A grid of cells."""

    def __init__(self, rows, columns):
        self.cells = [[0] * columns for _ in range(rows)]

    def snapshot(self):
        """The rows as they are now; later moves must not change them."""
        return [list(row) for row in self.cells]

    def put(self, row, column, value):
        self.cells[row][column] = value
