def all_even(numbers):
    """Are all numbers even?"""
    for number in numbers:
        if number % 2:
            return False
    return True
