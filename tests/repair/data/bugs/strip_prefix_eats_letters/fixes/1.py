def without_prefix(name):
    """The name without a leading 'data_'."""
    if name.startswith("data_"):
        return name[5:]
    return name
