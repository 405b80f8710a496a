"""Conversations with agents, their runs, and the sandboxes that these work in."""
