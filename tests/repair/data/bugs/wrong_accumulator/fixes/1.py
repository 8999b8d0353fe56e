def split_by_sign(numbers):
    """(negative ones, the others)."""
    negative = []
    other = []
    for number in numbers:
        if number < 0:
            negative.append(number)
        else:
            other.append(number)
    return negative, other
