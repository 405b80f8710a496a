-- Where the files of a session are that an app composes: in a folder of the machine, or in a container of its own.
ALTER TABLE agent_sessions ADD COLUMN workspace_kind text NOT NULL DEFAULT 'folder'
    CHECK (workspace_kind IN ('folder', 'container'));

-- How many times in a row a worker's files could not be stored, and what people are told from the fifth time on.
ALTER TABLE session_workers
    ADD COLUMN sync_failures integer NOT NULL DEFAULT 0 CHECK (sync_failures >= 0),
    ADD COLUMN alert text;
