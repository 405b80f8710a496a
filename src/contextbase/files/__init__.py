"""Files of projects and open workspaces, for people and agents: one service over both kinds of place."""
