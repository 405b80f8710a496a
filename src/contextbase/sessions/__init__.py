"""Conversations with agents: sessions, their runs, the queue of runs, and the sandboxes that these work in."""
