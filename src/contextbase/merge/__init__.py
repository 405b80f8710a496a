"""Three-way merge by file type: pure code, no I/O."""
