def digits_sum(number):
    """Sum of the decimal digits of a natural number."""
    if not number:
        return number
    return number % 10 + digits_sum(number // 10)
