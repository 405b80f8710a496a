-- Which new files an agent's workspace commits: whether git's ignore files count, and which paths are shared though they
-- look like credentials.
ALTER TABLE projects
    ADD COLUMN reads_gitignore boolean NOT NULL DEFAULT true,
    ADD COLUMN allowed_secrets text[] NOT NULL DEFAULT '{}' CHECK (cardinality(allowed_secrets) <= 1000);
