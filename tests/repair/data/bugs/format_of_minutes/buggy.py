def clock(minutes):
    """Minutes since midnight as H:MM."""
    return "%d:%d" % (minutes // 60, minutes % 60)
