"""The tools that agents call: each is defined once, and served over MCP and HTTP alike."""
