"""Where an agent's commands run: a port, and a driver for each way of keeping them in."""
