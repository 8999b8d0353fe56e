"""One module per command or family of commands; each is imported only when it is used."""
