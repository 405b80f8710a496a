"""Commands of agents: each in a workspace and a sandbox, and what they changed brought back."""
