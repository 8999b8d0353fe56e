def leaves(tree):
    """All leaves of nested lists, from left to right."""
    for item in tree:
        if isinstance(item, list):
            yield from leaves(item)
        else:
            yield item
