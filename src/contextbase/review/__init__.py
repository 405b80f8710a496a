"""The review queue: changes that wait for a person, merged again whenever the head moves, decided, and closed."""
