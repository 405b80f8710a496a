"""The ways in: HTTP API and command line. Only here do error codes become statuses and exit codes."""
