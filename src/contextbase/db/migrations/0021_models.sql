-- Model services that agents use through the gateway, what they may cost, what they did cost; and the hosts that a
-- project's sandboxes may reach.

CREATE TABLE model_upstreams (
    id              uuid        PRIMARY KEY,
    name            text        NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    protocol        text        NOT NULL CHECK (protocol IN ('anthropic', 'openai')),
    base_url        text        NOT NULL CHECK (octet_length(base_url) <= 2000),
    sealed_key      bytea,                                      -- encrypted for this row alone; NULL: it needs none
    scope           text        NOT NULL CHECK (scope IN ('platform', 'project', 'user')),
    project_id      uuid        REFERENCES projects,
    principal_id    uuid        REFERENCES principals,
    may_be_private  boolean     NOT NULL,                       -- whether it may be at an address of our own network
    created_by      uuid        NOT NULL REFERENCES principals,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((scope = 'project') = (project_id IS NOT NULL)),
    CHECK ((scope = 'user') = (principal_id IS NOT NULL)),
    -- Which one answers is never a matter of chance.
    CONSTRAINT model_upstreams_one_per_scope UNIQUE NULLS NOT DISTINCT (scope, project_id, principal_id, protocol)
);

-- The models that may be asked for. Prices in micro-units of the currency for a million tokens; NULL: the built-in ones.
CREATE TABLE allowed_models (
    name                text    PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 200),
    protocol            text    NOT NULL CHECK (protocol IN ('anthropic', 'openai')),
    role                text    NOT NULL CHECK (role IN ('main', 'small')),
    input_price         bigint  CHECK (input_price >= 0),
    output_price        bigint  CHECK (output_price >= 0),
    cache_read_price    bigint  CHECK (cache_read_price >= 0),
    cache_write_price   bigint  CHECK (cache_write_price >= 0),
    CHECK (num_nulls(input_price, output_price, cache_read_price, cache_write_price) IN (0, 4))
);

-- What a user or a project may spend in a calendar month (UTC), in micro-units.
CREATE TABLE model_budgets (
    scope           text    NOT NULL CHECK (scope IN ('user', 'project')),
    subject_id      uuid    NOT NULL,
    monthly_limit   bigint  NOT NULL CHECK (monthly_limit >= 0),
    PRIMARY KEY (scope, subject_id)
);

-- What was spent, and what requests under way may still cost. A run has one row, of the first month there is.
CREATE TABLE model_spending (
    scope       text    NOT NULL CHECK (scope IN ('run', 'user', 'project')),
    subject_id  uuid    NOT NULL,
    month       date    NOT NULL,
    spent       bigint  NOT NULL DEFAULT 0 CHECK (spent >= 0),
    reserved    bigint  NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    PRIMARY KEY (scope, subject_id, month)
);

-- A request under way. Its row goes when it is settled, or a day later if its server died.
CREATE TABLE model_reservations (
    id          uuid        PRIMARY KEY,
    scopes      text[]      NOT NULL,
    subjects    uuid[]      NOT NULL,
    months      date[]      NOT NULL,
    amount      bigint      NOT NULL CHECK (amount >= 0),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (cardinality(scopes) = cardinality(subjects) AND cardinality(scopes) = cardinality(months))
);
CREATE INDEX model_reservations_by_age ON model_reservations (created_at);

CREATE TABLE usage_logs (
    id                  uuid        PRIMARY KEY,                -- the gateway's own name of the request
    upstream            text        NOT NULL,
    upstream_request_id text,                                   -- as the upstream calls it, if it does
    session_id          uuid        NOT NULL,
    run_id              uuid        NOT NULL,
    attempt             integer     NOT NULL,
    owner_id            uuid        NOT NULL REFERENCES principals,
    project_id          uuid        NOT NULL REFERENCES projects,
    model               text        NOT NULL,
    status              integer     NOT NULL,
    input_tokens        bigint      NOT NULL CHECK (input_tokens >= 0),
    output_tokens       bigint      NOT NULL CHECK (output_tokens >= 0),
    cache_read_tokens   bigint      NOT NULL CHECK (cache_read_tokens >= 0),
    cache_write_tokens  bigint      NOT NULL CHECK (cache_write_tokens >= 0),
    is_estimate         boolean     NOT NULL,                   -- the upstream did not say; its answer was cut
    cost                bigint      NOT NULL CHECK (cost >= 0), -- micro-units
    at                  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT usage_is_logged_once UNIQUE (upstream, upstream_request_id)
);
CREATE INDEX usage_logs_of_a_run ON usage_logs (run_id, at);
CREATE INDEX usage_logs_of_a_project ON usage_logs (project_id, at);

-- Hosts that sandboxes of a project may reach through the egress proxy: a name, *.name, or preset:NAME.
CREATE TABLE egress_hosts (
    project_id  uuid    NOT NULL REFERENCES projects,
    host        text    NOT NULL CHECK (octet_length(host) BETWEEN 1 AND 260),
    PRIMARY KEY (project_id, host)
);
