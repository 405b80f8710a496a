"""Others' changes on their way into an agent's folder, while the agent works in it."""
