def is_weekend(day):
    return day == "Saturday" or day == "Sunday"
