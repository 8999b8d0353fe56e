"""The Model Context Protocol: our tools for other agents. The only room that imports `mcp`."""
