"""What happens in a session as events, and what is shown of it: pure functions of these."""
