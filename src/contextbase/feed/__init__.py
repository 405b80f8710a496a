"""Who changed what, as it lands: commits by seq, other events by their own counter, and hints that wake readers."""
