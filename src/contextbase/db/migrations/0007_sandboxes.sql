-- Sandboxes on agents' workspaces: they outlive the server that made them.

CREATE TABLE sandboxes (
    id              uuid        PRIMARY KEY,
    workspace_id    uuid        NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    node            text        NOT NULL,                           -- the server whose machine it is on
    driver          text        NOT NULL CHECK (driver IN ('bubblewrap', 'docker', 'none')),
    network         text        NOT NULL CHECK (network IN ('none', 'loopback')),
    limits          jsonb       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at         timestamptz NOT NULL DEFAULT clock_timestamp(), -- when a command last ran in it, to the minute
    removed_at      timestamptz
);
-- What one does in the folder, the other would not see: they would be in each other's way.
CREATE UNIQUE INDEX sandboxes_one_for_a_workspace ON sandboxes (workspace_id) WHERE removed_at IS NULL;
CREATE INDEX sandboxes_of_node ON sandboxes (node) WHERE removed_at IS NULL;
