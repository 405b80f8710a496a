"""Many streams over one connection between server and sandbox: the same code on both sides, standard library only."""
