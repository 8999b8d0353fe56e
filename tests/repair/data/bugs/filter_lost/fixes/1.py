def mean_of_known(values):
    """Mean of the values that are not None."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
