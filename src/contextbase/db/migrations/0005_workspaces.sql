-- Private folders of agents: where each is, what it was made from, and what was last committed from it.

CREATE TABLE workspaces (
    id              uuid        PRIMARY KEY,
    project_id      uuid        NOT NULL REFERENCES projects,
    principal_id    uuid        NOT NULL REFERENCES principals,     -- the agent whose it is
    node            text        NOT NULL,                           -- the server that holds the folder
    provider        text        NOT NULL CHECK (provider IN ('overlay', 'copy')),
    path            text        NOT NULL,                           -- on that node
    epoch           uuid        NOT NULL,
    base_seq        bigint      NOT NULL CHECK (base_seq >= 0),
    policy_version  bigint      NOT NULL,                           -- that the view was made under
    state           text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'completed', 'abandoned', 'lost')),
    checkpoint      integer     NOT NULL DEFAULT 0 CHECK (checkpoint >= 0),  -- how many were made
    pending         text,                                           -- the one under way: sent again after a crash
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at        timestamptz,
    removed_at      timestamptz,                                    -- the folder is gone
    CHECK ((state = 'open') = (ended_at IS NULL)),
    CHECK (pending IS NULL OR state = 'open')
);
CREATE UNIQUE INDEX workspaces_one_open ON workspaces (project_id, principal_id) WHERE state = 'open';
CREATE INDEX workspaces_with_folder ON workspaces (node) WHERE removed_at IS NULL;

-- Paths that were committed and went on: what the folder held then, and the snapshot later edits of it are based on.
CREATE TABLE workspace_paths (
    workspace_id    uuid        NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    path            text        COLLATE "C" NOT NULL,
    base_seq        bigint      NOT NULL CHECK (base_seq >= 0),
    kind            text        NOT NULL CHECK (kind IN ('file', 'symlink', 'directory', 'deleted')),
    content_hash    bytea,
    size            bigint      NOT NULL DEFAULT 0,
    executable      boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (workspace_id, path),
    CHECK ((content_hash IS NOT NULL) = (kind IN ('file', 'symlink')))
);
