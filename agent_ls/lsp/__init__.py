"""The language server: the only room that knows pygls and lsprotocol."""
