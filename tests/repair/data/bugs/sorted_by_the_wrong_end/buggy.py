def podium(scores):
    """Names of the three best, best first. `scores` maps names to points."""
    ranked = sorted(scores, key=scores.get)
    return ranked[:3]
