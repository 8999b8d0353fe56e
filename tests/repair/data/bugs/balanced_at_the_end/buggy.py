def balanced(text):
    """Are the brackets of the text balanced?"""
    depth = 0
    for char in text:
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth < 0:
                return False
    return True
