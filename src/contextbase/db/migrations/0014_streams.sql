-- Events of projects, sessions, users and the system in one table, each scope with a counter of its own.

-- Where each scope's stream ends. Whoever appends updates the row, which stays locked until the transaction ends, so that
-- numbers become visible in order.
CREATE TABLE stream_heads (
    scope_kind    text    NOT NULL CHECK (scope_kind IN ('project', 'session', 'user', 'system')),
    scope_id      uuid    NOT NULL,                   -- the project, session or principal; all zeros: the system
    number        bigint  NOT NULL DEFAULT 0 CHECK (number >= 0),
    epoch         uuid,                               -- renewed by a restore; a project has its own
    -- A project's row cannot go while its stream is there: commits rely on that. A principal takes its stream along.
    project_id    uuid    GENERATED ALWAYS AS (CASE scope_kind WHEN 'project' THEN scope_id END) STORED
                  REFERENCES projects,
    principal_id  uuid    GENERATED ALWAYS AS (CASE scope_kind WHEN 'user' THEN scope_id END) STORED
                  REFERENCES principals ON DELETE CASCADE,
    PRIMARY KEY (scope_kind, scope_id),
    CHECK ((scope_kind = 'project') = (epoch IS NULL)),
    CHECK ((scope_kind = 'system') = (scope_id = '00000000-0000-0000-0000-000000000000'))
);
-- For a principal that is deleted.
CREATE INDEX stream_heads_principal ON stream_heads (principal_id) WHERE principal_id IS NOT NULL;

CREATE TABLE stream_events (
    scope_kind    text        NOT NULL,
    scope_id      uuid        NOT NULL,
    number        bigint      NOT NULL CHECK (number >= 1),
    kind          text        NOT NULL,
    principal_id  uuid        REFERENCES principals ON DELETE SET NULL,  -- who did it
    path          text        COLLATE "C",            -- of a project: who may see the path may see the event; NULL: all
    payload       jsonb       NOT NULL DEFAULT '{}',
    content_hash  bytea,                              -- the blob with the whole payload; the row has a preview of it
    size          bigint      CHECK (size >= 0),      -- of that blob
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    content_live  boolean     GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (scope_kind, scope_id, number),
    FOREIGN KEY (scope_kind, scope_id) REFERENCES stream_heads ON DELETE CASCADE,
    CONSTRAINT stream_events_keep_their_body FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live),
    CHECK ((content_hash IS NULL) = (size IS NULL))
);
-- For pruning; a session's events stay as long as the session.
CREATE INDEX stream_events_age ON stream_events (scope_kind, created_at) WHERE scope_kind <> 'session';
CREATE INDEX stream_events_blob ON stream_events (content_hash) WHERE content_hash IS NOT NULL;

INSERT INTO stream_heads (scope_kind, scope_id, number) SELECT 'project', project_id, number FROM event_heads;
INSERT INTO stream_events (scope_kind, scope_id, number, kind, principal_id, path, payload, created_at)
SELECT 'project', project_id, number, kind, principal_id, path, payload, created_at FROM events;
DROP TABLE events;
DROP TABLE event_heads;
