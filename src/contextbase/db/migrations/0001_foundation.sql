-- Principals, tokens, audit, projects, blobs and the versioned tree.
-- Rules that must always hold are constraints here, so that no code path can break them:
--   C2  seqs are dense: every commit but the first points at the one before it
--   C3  version chains have no gaps, inline blobs hash to their name, every version's blob is there and stays
--   C8  audit rows are dense per chain and cannot be changed or removed (their HMAC chain catches those who bypass this)
-- Paths use the "C" collation so that a folder is one contiguous index range on any server.


-- Who acts ---------------------------------------------------------------------------------------------------------

CREATE TABLE principals (
    id          uuid        PRIMARY KEY,
    kind        text        NOT NULL CHECK (kind IN ('user', 'agent', 'adapter', 'system')),
    name        text        NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'),
    is_owner    boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (kind, name),
    CHECK (NOT is_owner OR kind = 'user')
);
CREATE UNIQUE INDEX principals_one_owner ON principals (is_owner) WHERE is_owner;


-- Projects ---------------------------------------------------------------------------------------------------------

CREATE TABLE projects (
    id              uuid        PRIMARY KEY,
    name            text        NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    description     text        NOT NULL DEFAULT '' CHECK (octet_length(description) <= 4096),
    head            bigint      NOT NULL DEFAULT 0 CHECK (head >= 0),
    epoch           uuid        NOT NULL,             -- renewed by a restore: cursors from before it are refused
    policy_version  bigint      NOT NULL DEFAULT 1 CHECK (policy_version >= 1),
    created_by      uuid        NOT NULL REFERENCES principals,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at      timestamptz,                      -- hidden from everyone; its name is free again; nothing is lost
    head_commit     bigint      GENERATED ALWAYS AS (NULLIF(head, 0)) STORED
);
CREATE UNIQUE INDEX projects_name ON projects (name) WHERE deleted_at IS NULL;


-- Tokens: only the sha256 of the secret is stored ------------------------------------------------------------------

CREATE TABLE tokens (
    id            uuid        PRIMARY KEY,
    principal_id  uuid        NOT NULL REFERENCES principals,
    name          text        NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
    secret_hash   bytea       NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    actions       text[]      NOT NULL CHECK (actions <@ ARRAY['read', 'write', 'admin'] AND cardinality(actions) > 0),
    project_id    uuid        REFERENCES projects,    -- NULL: every project the principal may use
    path_prefix   text        COLLATE "C",            -- NULL: the whole tree
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz NOT NULL,
    revoked_at    timestamptz,
    CHECK (expires_at > created_at),
    CHECK (path_prefix IS NULL OR project_id IS NOT NULL)
);
CREATE INDEX tokens_principal ON tokens (principal_id);


-- Blobs ------------------------------------------------------------------------------------------------------------

-- One row for every blob anything may refer to. References point at (hash, live): GC takes `live` away before it
-- removes the bytes, and the foreign keys refuse that for a blob somebody refers to, committed or about to be.
CREATE TABLE blobs (
    hash        bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    size        bigint      NOT NULL CHECK (size >= 0),
    live        boolean     NOT NULL DEFAULT true,    -- false: GC is removing the bytes
    renewed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),  -- the last put; GC's grace period starts here
    UNIQUE (hash, live)
);

-- The bytes of small blobs. Larger ones are in the blob store.
CREATE TABLE blob_contents (
    hash       bytea       PRIMARY KEY,
    content    bytea       NOT NULL,
    stored_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT blob_contents_hash_to_their_name CHECK (sha256(content) = hash)
);


-- Commits and versions ---------------------------------------------------------------------------------------------

CREATE TABLE commits (
    project_id     uuid        NOT NULL REFERENCES projects,
    seq            bigint      NOT NULL CHECK (seq >= 1),
    id             uuid        NOT NULL UNIQUE,       -- chosen by the writer's server: tells whether a COMMIT happened
    principal_id   uuid        NOT NULL REFERENCES principals,
    operator_type  text        NOT NULL CHECK (operator_type IN
                       ('web_ui', 'agent', 'external_agent', 'saas_adapter', 'api', 'system')),
    message        text        NOT NULL DEFAULT '',
    committed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    previous_seq   bigint      GENERATED ALWAYS AS (NULLIF(seq, 1) - 1) STORED,
    PRIMARY KEY (project_id, seq),
    CONSTRAINT commits_are_dense FOREIGN KEY (project_id, previous_seq) REFERENCES commits (project_id, seq)
);
CREATE INDEX commits_principal ON commits (principal_id, project_id, seq);

-- Moved last in the transaction that adds the commit, checked at its end.
ALTER TABLE projects ADD CONSTRAINT projects_head_is_a_commit
    FOREIGN KEY (id, head_commit) REFERENCES commits (project_id, seq) DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE nodes (
    project_id   uuid   NOT NULL,
    id           uuid   NOT NULL,
    created_seq  bigint NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, created_seq) REFERENCES commits (project_id, seq)
);

-- A node's n-th state. It holds from `seq` until (not including) `replaced_seq`; only that end is ever written later.
CREATE TABLE versions (
    project_id      uuid     NOT NULL,
    node_id         uuid     NOT NULL,
    number          integer  NOT NULL CHECK (number >= 1),
    seq             bigint   NOT NULL,
    replaced_seq    bigint   CHECK (replaced_seq > seq),  -- so a commit adds at most one version of a node
    path            text     COLLATE "C" NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
    kind            text     NOT NULL CHECK (kind IN ('file', 'symlink', 'directory', 'deleted')),
    content_hash    bytea,
    size            bigint   NOT NULL DEFAULT 0 CHECK (size >= 0),
    executable      boolean  NOT NULL DEFAULT false,
    mime            text     NOT NULL DEFAULT '',
    base_number     integer,                          -- parent: the version this was made from
    merged_number   integer,                          -- other parent: the head it was merged with
    sent_hash       bytea    CHECK (octet_length(sent_hash) = 32),  -- what the writer sent, when the result differs
    previous        integer  GENERATED ALWAYS AS (NULLIF(number, 1) - 1) STORED,
    content_live    boolean  GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (project_id, node_id, number),
    FOREIGN KEY (project_id, node_id) REFERENCES nodes (project_id, id),
    FOREIGN KEY (project_id, seq) REFERENCES commits (project_id, seq),
    CONSTRAINT version_chains_have_no_gaps
        FOREIGN KEY (project_id, node_id, previous) REFERENCES versions (project_id, node_id, number),
    CONSTRAINT versions_keep_their_blob FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live),
    CHECK ((content_hash IS NOT NULL) = (kind IN ('file', 'symlink'))),
    CHECK (base_number < number AND merged_number < number)
);
-- One state of a node, and one node at a path, at the head.
CREATE UNIQUE INDEX versions_one_head_per_node ON versions (project_id, node_id) WHERE replaced_seq IS NULL;
CREATE UNIQUE INDEX versions_one_node_per_path ON versions (project_id, path)
    WHERE replaced_seq IS NULL AND kind <> 'deleted';
-- The tree at N by folder; the changes between M and N; who refers to a blob.
CREATE INDEX versions_path ON versions (project_id, path, seq);
CREATE INDEX versions_seq ON versions (project_id, seq);
CREATE INDEX versions_blob ON versions (content_hash) WHERE content_hash IS NOT NULL;

-- What lost against the head or waits for a review: kept and listed, never part of a tree.
CREATE TABLE side_versions (
    project_id    uuid     NOT NULL,
    id            uuid     NOT NULL,
    seq           bigint   NOT NULL,                  -- the commit in which it was set aside
    node_id       uuid     NOT NULL,
    path          text     COLLATE "C" NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
    reason        text     NOT NULL CHECK (reason IN ('superseded', 'in_review')),
    kind          text     NOT NULL CHECK (kind IN ('file', 'symlink', 'directory', 'deleted')),
    content_hash  bytea,
    size          bigint   NOT NULL DEFAULT 0 CHECK (size >= 0),
    executable    boolean  NOT NULL DEFAULT false,
    mime          text     NOT NULL DEFAULT '',
    base_number   integer,
    content_live  boolean  GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, node_id) REFERENCES nodes (project_id, id),
    FOREIGN KEY (project_id, seq) REFERENCES commits (project_id, seq),
    CONSTRAINT side_versions_keep_their_blob FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live),
    CHECK ((content_hash IS NOT NULL) = (kind IN ('file', 'symlink')))
);
CREATE INDEX side_versions_node ON side_versions (project_id, node_id);
CREATE INDEX side_versions_blob ON side_versions (content_hash) WHERE content_hash IS NOT NULL;


-- Events: what is not a commit (leases, notices, uncommitted file operations), by a counter of their own -----------

-- Taken FOR UPDATE and held to the end of the transaction, so that event numbers become visible in order.
CREATE TABLE event_heads (
    project_id  uuid    PRIMARY KEY REFERENCES projects,
    number      bigint  NOT NULL DEFAULT 0 CHECK (number >= 0)
);

CREATE TABLE events (
    project_id    uuid        NOT NULL REFERENCES projects,
    number        bigint      NOT NULL CHECK (number >= 1),
    kind          text        NOT NULL,
    principal_id  uuid        REFERENCES principals,
    path          text        COLLATE "C",            -- who may see the path may see the event; NULL: everyone
    payload       jsonb       NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, number)
);
CREATE INDEX events_age ON events (created_at);


-- Audit ------------------------------------------------------------------------------------------------------------

-- Where each chain ends; taken FOR UPDATE by whoever appends. `seal` is an HMAC over (chain, number, mac).
CREATE TABLE audit_heads (
    chain   uuid    PRIMARY KEY,                      -- a project's id; all zeros: the system's chain
    number  bigint  NOT NULL DEFAULT 0 CHECK (number >= 0),
    mac     bytea   NOT NULL DEFAULT '',
    seal    bytea   NOT NULL DEFAULT ''
);

CREATE TABLE audit (
    chain          uuid        NOT NULL REFERENCES audit_heads,
    number         bigint      NOT NULL CHECK (number >= 1),
    at             timestamptz NOT NULL,              -- to the millisecond
    operator_type  text        NOT NULL,
    principal_id   uuid        NOT NULL,
    token_id       uuid,
    action         text        NOT NULL,
    path           text        COLLATE "C",           -- as it was then
    node_id        uuid,
    base_seq       bigint,
    seq            bigint,
    old_hash       bytea,
    new_hash       bytea,
    strategy       text,
    summary        text        NOT NULL,
    origin         text        NOT NULL DEFAULT '',   -- from where: address or node
    trace_id       text        NOT NULL DEFAULT '',
    details        text        NOT NULL DEFAULT '{}', -- canonical JSON: the HMAC covers its exact spelling
    mac            bytea       NOT NULL CHECK (octet_length(mac) = 32),
    previous       bigint      GENERATED ALWAYS AS (NULLIF(number, 1) - 1) STORED,
    PRIMARY KEY (chain, number),
    CONSTRAINT audit_is_dense FOREIGN KEY (chain, previous) REFERENCES audit (chain, number)
);
CREATE INDEX audit_seq ON audit (chain, seq) WHERE seq IS NOT NULL;

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only';
END
$$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
