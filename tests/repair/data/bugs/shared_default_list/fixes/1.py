def collect(item, bag=None):
    """Adds the item to the bag, or to a new bag."""
    if bag is None:
        bag = []
    bag.append(item)
    return bag
