class Cart:
    def __init__(self):
        self.prices = []
        self.shipping = 5

    def add(self, price):
        self.prices.append(price)

    def goods(self):
        return sum(self.prices)

    def total(self):
        """Goods and shipping; free from 50 on."""
        if self.goods() > 50:
            return self.goods()
        return self.goods() + self.shipping
