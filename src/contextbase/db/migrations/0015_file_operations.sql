-- What was done to files in workspaces, through the file service or found by it afterwards. Operations on a project's own
-- tree are commits.

-- Numbers are dense per workspace: whoever appends holds the head of the workspace's stream.
CREATE TABLE file_operations (
    workspace_id   uuid        NOT NULL,                  -- no foreign key: the operation outlives the workspace
    number         bigint      NOT NULL CHECK (number >= 1),
    project_id     uuid        NOT NULL REFERENCES projects,
    action         text        NOT NULL CHECK (action IN ('write', 'delete', 'rename', 'mkdir', 'sync')),
    path           text        COLLATE "C" CHECK (octet_length(path) BETWEEN 1 AND 1024),  -- in the project
    previous_path  text        COLLATE "C",               -- of a rename
    kind           text        NOT NULL CHECK (kind IN ('file', 'symlink', 'directory', 'deleted')),  -- what it is since
    old_hash       bytea       CHECK (octet_length(old_hash) = 32),
    new_hash       bytea       CHECK (octet_length(new_hash) = 32),
    size           bigint      NOT NULL DEFAULT 0 CHECK (size >= 0),
    executable     boolean     NOT NULL DEFAULT false,
    modified_ns    bigint      NOT NULL DEFAULT 0,        -- with the next: how the file looked when this was noted
    stamp          bigint      NOT NULL DEFAULT 0,
    operator_type  text        NOT NULL CHECK (operator_type IN ('web_ui', 'agent', 'external_agent', 'saas_adapter',
                                                                 'api', 'system', 'external')),
    principal_id   uuid        NOT NULL REFERENCES principals,
    message_id     text        CHECK (octet_length(message_id) BETWEEN 1 AND 200),
    origin         text        NOT NULL DEFAULT '',       -- from where: address or machine
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, number),
    CHECK ((path IS NULL) = (action = 'sync')),
    CHECK ((previous_path IS NOT NULL) = (action = 'rename'))
);
CREATE INDEX file_operations_path ON file_operations (workspace_id, path, number);
CREATE INDEX file_operations_sync ON file_operations (workspace_id, number) WHERE action = 'sync';

-- A workspace has a stream of its own: what is not committed is for those alone who may see the workspace.
ALTER TABLE stream_heads DROP CONSTRAINT stream_heads_scope_kind_check;
ALTER TABLE stream_heads ADD CONSTRAINT stream_heads_scope_kind_check
    CHECK (scope_kind IN ('project', 'session', 'user', 'workspace', 'system'));
