"""The machines of a database: which there are, which one takes a new workspace, and who may send another's requests."""
