class Counter:
    def __init__(self):
        self.count = 0

    def hit(self):
        count = self.count + 1
        self.count = count
        return count
