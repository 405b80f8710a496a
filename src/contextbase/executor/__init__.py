"""The program inside a sandbox that owns the agent program, keeps a journal of its events and serves the channel."""
