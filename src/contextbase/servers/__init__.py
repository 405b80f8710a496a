"""The servers this account knows, and which of them is meant. Standard library only: every command starts with it."""
