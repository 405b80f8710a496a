"""The model gateway: an agent's model traffic, forwarded with keys it never sees, within budgets; and the ways out."""
