-- A workspace may be of a folder of the project, which it has as its top: then its paths, also those that are held, are
-- that folder's own.
ALTER TABLE workspaces ADD COLUMN folder text COLLATE "C";  -- NULL: the whole project
