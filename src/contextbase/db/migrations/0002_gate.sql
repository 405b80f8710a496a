-- What the gate needs: path policies, merge rules, ranks, idempotency, uploads, review items.


-- Who may do what where --------------------------------------------------------------------------------------------

ALTER TABLE projects ADD COLUMN default_level text NOT NULL DEFAULT 'RW'
    CHECK (default_level IN ('hidden', 'R', 'RA', 'RW-', 'RW'));

CREATE TABLE groups (
    id          uuid        PRIMARY KEY,
    name        text        NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE group_members (
    group_id      uuid  NOT NULL REFERENCES groups ON DELETE CASCADE,
    principal_id  uuid  NOT NULL REFERENCES principals,
    PRIMARY KEY (group_id, principal_id)
);
CREATE INDEX group_members_principal ON group_members (principal_id);

-- A rule is for a principal, for a group, or (neither) for everyone.
CREATE TABLE path_rules (
    id            uuid        PRIMARY KEY,
    project_id    uuid        NOT NULL REFERENCES projects,
    principal_id  uuid        REFERENCES principals,
    group_id      uuid        REFERENCES groups,
    pattern       text        COLLATE "C" NOT NULL CHECK (octet_length(pattern) BETWEEN 1 AND 1024),
    level         text        NOT NULL CHECK (level IN ('hidden', 'R', 'RA', 'RW-', 'RW')),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (principal_id IS NULL OR group_id IS NULL),
    CONSTRAINT path_rules_one_per_subject_and_pattern
        UNIQUE NULLS NOT DISTINCT (project_id, principal_id, group_id, pattern)
);


-- What a writer sent ----------------------------------------------------------------------------------------------

-- Kept as long as the version it was merged into.
ALTER TABLE versions ADD CONSTRAINT versions_keep_what_was_sent
    FOREIGN KEY (sent_hash, content_live) REFERENCES blobs (hash, live);
CREATE INDEX versions_sent ON versions (sent_hash) WHERE sent_hash IS NOT NULL;


-- How changes are merged -------------------------------------------------------------------------------------------

CREATE TABLE merge_rules (
    project_id  uuid     NOT NULL REFERENCES projects,
    position    integer  NOT NULL CHECK (position >= 1),   -- the last matching rule decides
    pattern     text     COLLATE "C" NOT NULL CHECK (octet_length(pattern) BETWEEN 1 AND 1024),
    strategy    text     NOT NULL CHECK (strategy IN ('auto', 'review', 'critical', 'last-writer', 'priority', 'union',
                                                      'crdt', 'ours', 'theirs')),
    PRIMARY KEY (project_id, position),
    UNIQUE (project_id, pattern)
);

-- For the strategy 'priority': the higher rank's file wins.
CREATE TABLE ranks (
    project_id    uuid     NOT NULL REFERENCES projects,
    principal_id  uuid     NOT NULL REFERENCES principals,
    rank          integer  NOT NULL,
    PRIMARY KEY (project_id, principal_id)
);


-- Requests ---------------------------------------------------------------------------------------------------------

-- C7: written in the commit's own transaction, so that a request happened exactly if its answer is here.
CREATE TABLE answered_requests (
    project_id    uuid        NOT NULL REFERENCES projects,
    principal_id  uuid        NOT NULL REFERENCES principals,
    key           text        NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 200),
    request_hash  bytea       NOT NULL CHECK (octet_length(request_hash) = 32),
    answer        text        NOT NULL,                    -- JSON
    answered_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, principal_id, key)
);
CREATE INDEX answered_requests_age ON answered_requests (answered_at);

-- Who uploaded what: a writer may name a blob by hash only if it uploaded it, or may read a version that holds it.
-- A reference, so GC leaves it alone until the upload is forgotten.
CREATE TABLE uploads (
    project_id    uuid        NOT NULL REFERENCES projects,
    principal_id  uuid        NOT NULL REFERENCES principals,
    content_hash  bytea       NOT NULL,
    size          bigint      NOT NULL CHECK (size >= 0),
    uploaded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    content_live  boolean     GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (project_id, principal_id, content_hash),
    CONSTRAINT uploads_keep_their_blob FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live)
);
CREATE INDEX uploads_age ON uploads (uploaded_at);
CREATE INDEX uploads_blob ON uploads (content_hash);


-- Review -----------------------------------------------------------------------------------------------------------

-- A change that waits for a person: all three sides are kept by their versions.
CREATE TABLE review_items (
    project_id       uuid        NOT NULL,
    id               uuid        NOT NULL,
    seq              bigint      NOT NULL,                 -- the commit that brought it
    node_id          uuid        NOT NULL,
    path             text        COLLATE "C" NOT NULL,
    author_id        uuid        NOT NULL REFERENCES principals,
    state            text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'resolved', 'rejected', 'obsolete')),
    reason           text        NOT NULL,
    base_number      integer,                              -- base: this version of the node; NULL: there was none
    ours_number      integer,                              -- the head it met; NULL: there was none
    side_version_id  uuid        NOT NULL,                 -- theirs
    conflicts        text        NOT NULL,                 -- JSON: where, base, ours, theirs, suggestion
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, side_version_id) REFERENCES side_versions (project_id, id),
    FOREIGN KEY (project_id, node_id) REFERENCES nodes (project_id, id),
    FOREIGN KEY (project_id, seq) REFERENCES commits (project_id, seq)
);
CREATE INDEX review_items_open ON review_items (project_id, created_at) WHERE state = 'open';


-- Reads ------------------------------------------------------------------------------------------------------------

-- What a commit set aside: for the log.
CREATE INDEX side_versions_seq ON side_versions (project_id, seq);
