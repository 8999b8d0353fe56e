def digits_sum(number):
    """Sum of the decimal digits of a natural number."""
    if number == 0:
        return 0
    return number % 10 + digits_sum(number // 10)
