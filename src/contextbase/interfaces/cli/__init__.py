"""The command line: `contextbase` (short: `cb`)."""
