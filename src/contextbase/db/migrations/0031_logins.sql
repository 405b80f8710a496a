-- How people log in: passwords, the logins of browsers, and the links by which somebody chooses a password.

CREATE TABLE passwords (
    principal_id  uuid        PRIMARY KEY REFERENCES users,
    hash          text        NOT NULL CHECK (hash LIKE '$argon2id$%'),    -- with its salt and its costs
    changed_at    timestamptz NOT NULL
);

-- Failed logins by name and by address, as hashes: names that nobody has are counted like the others, so that being
-- locked out does not tell who exists.
CREATE TABLE login_failures (
    key         bytea       PRIMARY KEY CHECK (octet_length(key) = 32),
    failures    integer     NOT NULL CHECK (failures >= 1),                -- in a row, with those under way
    failed_at   timestamptz NOT NULL
);
CREATE INDEX login_failures_age ON login_failures (failed_at);

-- A browser that is logged in. Its cookie is replaced now and then; the one before it is good for a moment longer, for
-- requests that were under way.
CREATE TABLE browser_logins (
    id             uuid        PRIMARY KEY,
    principal_id   uuid        NOT NULL REFERENCES principals,
    token_id       uuid        REFERENCES tokens,                          -- made with a token: it ends with that
    secret_hash    bytea       NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    previous_hash  bytea       UNIQUE CHECK (octet_length(previous_hash) = 32),
    rotated_at     timestamptz NOT NULL,
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    CHECK (expires_at > created_at)
);
CREATE INDEX browser_logins_of_principal ON browser_logins (principal_id) WHERE ended_at IS NULL;

-- An invitation, or a new start for somebody who forgot the password: whoever has the link chooses one, once.
CREATE TABLE password_links (
    secret_hash   bytea       PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
    principal_id  uuid        NOT NULL REFERENCES users,
    made_by       uuid        NOT NULL REFERENCES principals,
    expires_at    timestamptz NOT NULL,
    used_at       timestamptz                                              -- also when a newer link replaced it
);
CREATE INDEX password_links_of_person ON password_links (principal_id) WHERE used_at IS NULL;
