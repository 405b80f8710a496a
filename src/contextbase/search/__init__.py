"""Finding files by name and by content, at any snapshot and in workspaces, as far as the caller may see."""
