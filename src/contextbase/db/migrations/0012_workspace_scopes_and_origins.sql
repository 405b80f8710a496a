-- A file that a workspace renamed and committed may be renamed again: this says which file of the view it is, so that the
-- next rename starts from where the project has it by then.
ALTER TABLE workspace_paths ADD COLUMN origin text COLLATE "C";

-- What the token was for that a workspace was made with: '' the whole project, else a folder. A token for a folder gets
-- no workspace that may hold more. NULL: made before this was noted.
ALTER TABLE workspaces ADD COLUMN scope text COLLATE "C";
