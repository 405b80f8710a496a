"""Sandboxes that run on this machine's own kernel, started by a small launcher program."""
