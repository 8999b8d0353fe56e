def running_means(values, width):
    """Mean of each window of `width` neighbours."""
    means = []
    for start in range(len(values) - width):
        window = values[start : start + width]
        means.append(sum(window) / width)
    return means
