-- Which machines live is known from the table machines alone; claims of one machine wait for each other at its row there.
DROP TABLE run_machines;
