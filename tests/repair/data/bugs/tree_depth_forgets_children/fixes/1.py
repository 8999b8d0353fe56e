class Node:
    def __init__(self, value, left=None, right=None):
        self.value = value
        self.left = left
        self.right = right


def depth(node):
    """Number of nodes on the longest way down."""
    if node is None:
        return 0
    return 1 + max(depth(node.left), depth(node.right))
