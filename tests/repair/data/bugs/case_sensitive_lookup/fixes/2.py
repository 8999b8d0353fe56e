COLOURS = {"red": 1, "green": 2, "blue": 3}


def colour_code(name):
    """Code of a colour; upper and lower case are the same."""
    key = name.strip()
    return COLOURS[key.lower()]
