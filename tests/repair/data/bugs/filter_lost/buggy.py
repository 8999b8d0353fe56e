def mean_of_known(values):
    """Mean of the values that are not None."""
    known = [value for value in values]
    return sum(known) / len(known)
