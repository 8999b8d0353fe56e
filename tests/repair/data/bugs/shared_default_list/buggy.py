def collect(item, bag=[]):
    """Adds the item to the bag, or to a new bag."""
    bag.append(item)
    return bag
