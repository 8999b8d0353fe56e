def numbers_in(lines):
    """The lines that are numbers; others are skipped."""
    found = []
    for line in lines:
        if not line.isdigit():
            break
        found.append(int(line))
    return found
