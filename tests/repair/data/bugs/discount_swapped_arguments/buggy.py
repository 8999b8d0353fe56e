def clamp(value, low, high):
    return max(low, min(value, high))


def final_price(price, percent):
    """Price after a discount of 0 to 90 percent."""
    percent = clamp(0, percent, 90)
    return price * (100 - percent) / 100
