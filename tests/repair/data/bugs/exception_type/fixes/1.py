def parse_port(text, default=80):
    """The port number, or the default if the text is no number."""
    try:
        return int(text)
    except ValueError:
        return default
