def clock(minutes):
    """Minutes since midnight as H:MM."""
    return "%d:%02d" % (minutes // 60, minutes % 60)
