def initials(name):
    """First letters, in capitals."""
    letters = "".join(part[0] for part in name.split())
    letters = letters.upper()
    return letters
