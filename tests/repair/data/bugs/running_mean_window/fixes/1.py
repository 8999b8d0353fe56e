def running_means(values, width):
    """Mean of each window of `width` neighbours."""
    means = []
    for start in range(len(values) - width + 1):
        window = values[start : start + width]
        means.append(sum(window) / width)
    return means
