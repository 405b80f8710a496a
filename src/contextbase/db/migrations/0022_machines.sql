-- The machines of this database: who holds workspaces and sandboxes, and where other servers reach them.

CREATE TABLE machines (
    id                uuid        PRIMARY KEY,
    name              text        NOT NULL UNIQUE,                      -- as workspaces and sandboxes name it
    process           uuid        NOT NULL,                             -- a new one at each start
    address           text,                                             -- NULL: other servers cannot reach it
    version           text        NOT NULL,
    workspace_backend text,                                             -- how it makes folders; NULL: not tried yet
    sandbox_driver    text,                                             -- what commands run in; NULL: not tried yet
    is_draining       boolean     NOT NULL DEFAULT false,               -- an administrator wants no new workspaces there
    started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at           timestamptz NOT NULL DEFAULT clock_timestamp(),   -- its last beat
    expires_at        timestamptz NOT NULL,                             -- from then on it counts as lost
    stopped_at        timestamptz                                       -- it said goodbye
);
