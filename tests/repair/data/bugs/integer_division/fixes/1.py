def mean(values):
    """Arithmetic mean."""
    total = 0
    for value in values:
        total += value
    return total / len(values)
