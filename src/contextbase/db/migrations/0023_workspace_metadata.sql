-- Workspaces in which the file service shows `.meta`: what is known about the files, made when it is read.

ALTER TABLE workspaces ADD COLUMN has_metadata boolean NOT NULL DEFAULT false;
