-- Sessions with agents, their runs, the queue of runs, and what was said and done in them.

CREATE TABLE agent_sessions (
    id               uuid        PRIMARY KEY,
    owner_id         uuid        NOT NULL REFERENCES principals,           -- on whose behalf its agent works
    agent_id         uuid        NOT NULL UNIQUE REFERENCES principals,    -- the session's own agent
    project_id       uuid        NOT NULL REFERENCES projects,
    folder           text        COLLATE "C",                              -- NULL: the whole project
    actions          text[]      NOT NULL CHECK (actions <@ '{read,write}' AND 'read' = ANY (actions)),  -- of its grant
    provider         text        NOT NULL CHECK (provider <> ''),          -- which agent CLI
    model            text,                                                 -- NULL: the provider's default
    options          jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(options) = 'object'),
    land             text        NOT NULL DEFAULT 'auto' CHECK (land IN ('auto', 'after_review', 'never')),
    title            text        NOT NULL DEFAULT '',
    pinned           boolean     NOT NULL DEFAULT false,
    state            text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed', 'deleted')),
    sdk_session_ids  jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(sdk_session_ids) = 'object'),  -- by provider
    last_run         integer     NOT NULL DEFAULT 0 CHECK (last_run >= 0), -- the number of its newest run
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_active_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX agent_sessions_of_owner ON agent_sessions (owner_id, id) WHERE state <> 'deleted';

-- A session's container, and where it should be: the leader writes `desired_state`, and the machine that has it acts.
CREATE TABLE session_workers (
    session_id           uuid        PRIMARY KEY REFERENCES agent_sessions ON DELETE CASCADE,
    machine              text,                                             -- which has the sandbox and the folder
    container_id         text,                                             -- the sandbox's id there
    workspace_s3_prefix  text        NOT NULL,
    state                text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'stopped', 'deleted')),
    desired_state        text        NOT NULL DEFAULT 'running' CHECK (desired_state IN ('running', 'stopped', 'deleted')),
    executor_version     text,
    last_active_at       timestamptz NOT NULL,
    stopped_at           timestamptz,
    last_sync_at         timestamptz,                                      -- the last snapshot that was verified
    last_sync_status     text        NOT NULL DEFAULT 'idle'
                         CHECK (last_sync_status IN ('idle', 'running', 'success', 'failed')),
    last_sync_error      text,
    sync_requested_at    timestamptz,                                      -- newer than last_sync_at: one is due
    lost_at              timestamptz,                                      -- its machine or its sandbox is gone
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Nothing is stopped or removed before its files are provably stored. What was lost was not removed by us.
    CONSTRAINT session_workers_are_stored_before_they_stop
        CHECK (state = 'running' OR lost_at IS NOT NULL OR (last_sync_status = 'success' AND last_sync_at IS NOT NULL)),
    CHECK ((state = 'running') = (stopped_at IS NULL)),
    CHECK ((last_sync_status = 'failed') = (last_sync_error IS NOT NULL))
);
CREATE INDEX session_workers_of_machine ON session_workers (machine, state);

-- One message to a session's agent, and what came of it.
CREATE TABLE agent_runs (
    id                   uuid        PRIMARY KEY,
    session_id           uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    number               integer     NOT NULL CHECK (number >= 1),         -- in its session
    prompt               text        NOT NULL,
    provider             text        NOT NULL,
    model                text,
    state                text        NOT NULL DEFAULT 'queued'
                         CHECK (state IN ('queued', 'claimed', 'restoring', 'linking', 'preparing', 'running',
                                          'waiting_human', 'syncing', 'exported', 'succeeded', 'failed', 'canceled')),
    state_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempt              integer     NOT NULL DEFAULT 0 CHECK (attempt >= 0),  -- the fence: an older attempt changes nothing
    machine              text,                                             -- of the newest attempt
    reason               text,                                             -- a code: why it failed, was canceled or waits
    message              text,                                             -- the same for people
    runtime_version      text,
    image                text,
    cli_version          text,
    phases               jsonb       NOT NULL DEFAULT '{}',                -- milliseconds spent in each state
    landed               jsonb,                                            -- what became of its changes
    cancel_requested_at  timestamptz,
    idempotency_key      text,
    request_hash         bytea,
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at           timestamptz,                                      -- the agent began
    ended_at             timestamptz,
    UNIQUE (session_id, number),
    UNIQUE (session_id, idempotency_key),
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CONSTRAINT agent_runs_end_once CHECK ((state IN ('succeeded', 'failed', 'canceled')) = (ended_at IS NOT NULL))
);
-- One run at a time in a session. A run that waits for a person counts: the next one must not overtake it.
CREATE UNIQUE INDEX agent_runs_one_at_work ON agent_runs (session_id)
    WHERE state IN ('claimed', 'restoring', 'linking', 'preparing', 'running', 'waiting_human', 'syncing', 'exported');

-- Which state may follow which; `sessions/states.py` says the same. Back to 'queued' is the next attempt. Only what is
-- changed is checked, so that a backup can be restored.
CREATE FUNCTION agent_runs_follow_their_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND NOT (
        (OLD.state, NEW.state) IN (
            ('queued', 'claimed'), ('claimed', 'restoring'), ('restoring', 'linking'), ('linking', 'preparing'),
            ('preparing', 'running'), ('running', 'waiting_human'), ('waiting_human', 'running'),
            ('running', 'syncing'), ('waiting_human', 'syncing'), ('syncing', 'exported'), ('exported', 'succeeded'))
        OR (OLD.state NOT IN ('succeeded', 'failed', 'canceled') AND NEW.state IN ('queued', 'failed', 'canceled')))
    THEN
        RAISE EXCEPTION 'a run does not go from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'agent_runs_follow_their_states';
    END IF;
    IF NEW.attempt <> OLD.attempt + (OLD.state = 'queued' AND NEW.state = 'claimed')::integer THEN
        RAISE EXCEPTION 'an attempt begins when a run is claimed, and only then'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'agent_runs_follow_their_states';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER agent_runs_follow_their_states BEFORE UPDATE OF state, attempt ON agent_runs
    FOR EACH ROW EXECUTE FUNCTION agent_runs_follow_their_states();

-- Machines that take runs. A machine's claims wait for each other at its row, so that its limits hold exactly.
CREATE TABLE run_machines (
    machine     text        PRIMARY KEY,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Whose turn it is: each owner's runs are spread over turns, and the lowest turn is claimed first.
CREATE TABLE run_turns (
    owner_id    uuid        PRIMARY KEY REFERENCES principals ON DELETE CASCADE,
    next_turn   bigint      NOT NULL
);

-- The runs that have not ended.
CREATE TABLE run_queue (
    run_id         uuid        PRIMARY KEY REFERENCES agent_runs ON DELETE CASCADE,
    session_id     uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    owner_id       uuid        NOT NULL REFERENCES principals,
    number         integer     NOT NULL,                                   -- of the run in its session
    state          text        NOT NULL CHECK (state IN ('behind', 'ready', 'claimed', 'parked')),
    priority       smallint    NOT NULL DEFAULT 0,                         -- higher first
    turn           bigint      NOT NULL,
    machine        text,                                                   -- that has the session's folder; NULL: any
    not_before     timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_by     text,
    lease_until    timestamptz,
    starting       boolean     NOT NULL DEFAULT false,                     -- claimed, and the agent does not work yet
    attempts       integer     NOT NULL DEFAULT 0,                         -- that failed for no fault of the run's
    parked_reason  text,
    last_error     text,
    queued_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((state = 'claimed') = (claimed_by IS NOT NULL)),
    CHECK ((state = 'claimed') = (lease_until IS NOT NULL)),
    CHECK ((state = 'parked') = (parked_reason IS NOT NULL)),
    CHECK (NOT starting OR state = 'claimed')
);
-- In order within a session: only the first of its runs can be claimed.
CREATE UNIQUE INDEX run_queue_one_in_front ON run_queue (session_id) WHERE state <> 'behind';
CREATE INDEX run_queue_behind ON run_queue (session_id, number) WHERE state = 'behind';
CREATE INDEX run_queue_ready ON run_queue (priority DESC, turn, run_id) WHERE state = 'ready';
CREATE INDEX run_queue_turns ON run_queue (turn) WHERE state = 'ready';
CREATE INDEX run_queue_claimed ON run_queue (claimed_by) WHERE state = 'claimed';

-- What an executor sent, once: its stream event has the rest.
CREATE TABLE run_event_ids (
    run_id      uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    attempt     integer     NOT NULL,
    n           bigint      NOT NULL,
    scope_kind  text        NOT NULL DEFAULT 'session' CHECK (scope_kind = 'session'),
    session_id  uuid        NOT NULL,
    number      bigint      NOT NULL,                                      -- in the session's stream
    ts          timestamptz NOT NULL,                                      -- as the executor says
    CONSTRAINT run_events_are_stored_once PRIMARY KEY (run_id, attempt, n),
    FOREIGN KEY (scope_kind, session_id, number) REFERENCES stream_events ON DELETE CASCADE
);
CREATE INDEX run_event_ids_number ON run_event_ids (session_id, number, scope_kind);

CREATE VIEW run_events AS
SELECT i.run_id || ':' || i.attempt || ':' || i.n AS event_id, i.run_id, i.session_id, i.attempt, i.n, e.number,
       e.kind AS type, e.payload AS data, e.content_hash, e.size, i.ts, e.created_at
FROM run_event_ids i
JOIN stream_events e ON e.scope_kind = i.scope_kind AND e.scope_id = i.session_id AND e.number = i.number;

-- What people and agents said: a projection of the session's events.
CREATE TABLE agent_messages (
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    attempt      integer     NOT NULL,
    message_id   text        NOT NULL,
    position     bigint      NOT NULL,                                     -- its first event in the session's stream
    role         text        NOT NULL CHECK (role IN ('user', 'assistant')),
    state        text        NOT NULL CHECK (state IN ('streaming', 'done')),
    parts        jsonb       NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (run_id, attempt, message_id)
);
CREATE INDEX agent_messages_in_order ON agent_messages (session_id, position);

-- What agents did with their tools: another projection.
CREATE TABLE tool_executions (
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    attempt      integer     NOT NULL,
    tool_id      text        NOT NULL,
    position     bigint      NOT NULL,
    name         text        NOT NULL,
    title        text        NOT NULL,
    input        jsonb       NOT NULL,
    status       text        NOT NULL CHECK (status IN ('running', 'ok', 'error', 'interrupted')),
    output       jsonb,
    truncated    boolean     NOT NULL DEFAULT false,                       -- the event has more than this row
    started_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    PRIMARY KEY (run_id, attempt, tool_id),
    CHECK ((status = 'running') = (ended_at IS NULL))
);
CREATE INDEX tool_executions_in_order ON tool_executions (session_id, position);

-- What a session has beside the project's files, at one moment.
CREATE TABLE session_snapshots (
    id            uuid        PRIMARY KEY,
    session_id    uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id        uuid        REFERENCES agent_runs ON DELETE SET NULL,
    message_id    text,                                                    -- the last message that it has
    project_id    uuid        NOT NULL REFERENCES projects,
    epoch         uuid        NOT NULL,
    base_seq      bigint      NOT NULL CHECK (base_seq >= 0),
    reason        text        NOT NULL,                                    -- turn, interval, stop, remove …
    files         integer     NOT NULL DEFAULT 0 CHECK (files >= 0),
    bytes         bigint      NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    sdk_session_ids jsonb     NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    verified_at   timestamptz                                              -- all of it was found in the blob store
);
CREATE INDEX session_snapshots_of_session ON session_snapshots (session_id, created_at DESC);

CREATE TABLE session_snapshot_files (
    snapshot_id   uuid        NOT NULL REFERENCES session_snapshots ON DELETE CASCADE,
    path          bytea       NOT NULL,                                    -- names that no project's tree would take, too
    position      integer     NOT NULL DEFAULT 0 CHECK (position >= 0),    -- the segments of a file that only grows
    kind          text        NOT NULL CHECK (kind IN ('file', 'symlink', 'directory', 'deleted')),
    content_hash  bytea,
    size          bigint      NOT NULL DEFAULT 0 CHECK (size >= 0),
    mode          integer     NOT NULL,
    base_seq      bigint      CHECK (base_seq >= 0),                       -- of work that is not committed; NULL: the session's own file
    content_live  boolean     GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (snapshot_id, path, position),
    CONSTRAINT session_snapshots_keep_their_files FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live),
    CHECK ((kind IN ('directory', 'deleted')) = (content_hash IS NULL)),
    CHECK (kind <> 'deleted' OR base_seq IS NOT NULL)
);
CREATE INDEX session_snapshot_files_blob ON session_snapshot_files (content_hash) WHERE content_hash IS NOT NULL;
