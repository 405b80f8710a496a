"""Everything in one place that can be brought back: make, verify and restore backups."""
