-- "I am on this file": leases, and where a policy makes them binding.

-- Whoever changes a project's leases holds its row here, so that overlaps are decided by one at a time. It is not the
-- project's own row: commits do not wait for it. Order of locks: this row, then (for the event) the project's.
CREATE TABLE lease_heads (
    project_id  uuid    PRIMARY KEY REFERENCES projects,
    last_token  bigint  NOT NULL DEFAULT 0 CHECK (last_token >= 0)   -- stays when leases go: no token comes twice
);

CREATE TABLE leases (
    project_id    uuid         NOT NULL REFERENCES lease_heads,
    token         bigint       NOT NULL CHECK (token > 0),
    pattern       text         COLLATE "C" NOT NULL CHECK (octet_length(pattern) BETWEEN 1 AND 1024),
    owner         text         NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 256),
    principal_id  uuid         NOT NULL REFERENCES principals,       -- for whom the owner works
    node          text         NOT NULL,                             -- '': no process of ours; heartbeats alone tell
    boot          text         NOT NULL,
    process_id    bigint       NOT NULL,
    started       bigint       NOT NULL,
    acquired_at   timestamptz  NOT NULL,
    expires_at    timestamptz  NOT NULL,                             -- by the database's clock
    depth         integer      NOT NULL CHECK (depth >= 1),
    PRIMARY KEY (project_id, token),
    CONSTRAINT leases_one_per_holder_and_pattern UNIQUE (project_id, pattern, owner, node, boot, process_id, started)
);

-- Where leases bind; the last rule that matches decides, and without one they advise.
CREATE TABLE lease_rules (
    project_id  uuid     NOT NULL REFERENCES projects,
    position    integer  NOT NULL CHECK (position >= 1),
    pattern     text     COLLATE "C" NOT NULL CHECK (octet_length(pattern) BETWEEN 1 AND 1024),
    binding     boolean  NOT NULL,
    PRIMARY KEY (project_id, position),
    UNIQUE (project_id, pattern)
);
