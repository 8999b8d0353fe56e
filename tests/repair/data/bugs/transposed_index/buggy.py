def transpose(matrix):
    """Rows become columns."""
    height, width = len(matrix), len(matrix[0])
    return [[matrix[x][y] for y in range(height)] for x in range(width)]
