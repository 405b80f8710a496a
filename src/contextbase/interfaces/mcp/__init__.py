"""The Model Context Protocol: a server at /mcp, and the bridge that `contextbase mcp` is."""
