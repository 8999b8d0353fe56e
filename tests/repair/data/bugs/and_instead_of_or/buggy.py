def is_weekend(day):
    return day == "Saturday" and day == "Sunday"
