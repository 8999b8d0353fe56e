def numbers_in(lines):
    """The lines that are numbers; others are skipped."""
    found = []
    for line in lines:
        if not line.isdigit():
            continue
        found.append(int(line))
    return found
