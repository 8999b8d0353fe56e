class Gauge:
    """A value with an optional upper limit."""

    def __init__(self, value, limit=None):
        self.value = value
        self.limit = limit

    def exceeded(self):
        """Is the value above the limit, if there is one?"""
        if not self.limit:
            return False
        return self.value > self.limit
