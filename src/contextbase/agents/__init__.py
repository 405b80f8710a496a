"""Agent programs, one file each, behind one port. They run inside the sandbox: standard library only."""
