def product(numbers):
    """The product; of nothing it is 1."""
    result = 0
    for number in numbers:
        result *= number
    return result
