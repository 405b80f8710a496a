-- Questions of agents to people, the answers, and agents' todo lists: projections of a session's events.

ALTER TABLE agent_sessions ADD COLUMN profile text NOT NULL DEFAULT 'default' CHECK (profile <> '');  -- of new runs

CREATE TABLE human_loop_requests (
    question_id  text        PRIMARY KEY,                                  -- begins with the run's id
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    attempt      integer     NOT NULL,
    position     bigint      NOT NULL,                                     -- its event in the session's stream
    kind         text        NOT NULL CHECK (kind IN ('question', 'permission')),
    prompt       text        NOT NULL,
    options      jsonb       NOT NULL CHECK (jsonb_typeof(options) = 'array'),
    multiple     boolean     NOT NULL,
    context      jsonb       NOT NULL CHECK (jsonb_typeof(context) = 'object'),
    status       text        NOT NULL CHECK (status IN ('pending', 'answered', 'expired', 'canceled')),
    deadline     timestamptz NOT NULL,                                     -- by the server's clock
    created_at   timestamptz NOT NULL,
    resolved_at  timestamptz,
    delivered_at timestamptz,                                              -- the agent has the answer
    CHECK ((status = 'pending') = (resolved_at IS NULL))
);
CREATE INDEX human_loop_requests_of_run ON human_loop_requests (run_id, position);
CREATE INDEX human_loop_requests_of_session ON human_loop_requests (session_id, position);
CREATE INDEX human_loop_requests_pending ON human_loop_requests (deadline) WHERE status = 'pending';

-- One answer for each question, whoever sends how many.
CREATE TABLE human_loop_responses (
    question_id  text        PRIMARY KEY REFERENCES human_loop_requests ON DELETE CASCADE,
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    answer       jsonb       NOT NULL CHECK (jsonb_typeof(answer) = 'object'),
    responder    text        NOT NULL,                                     -- such as user:ann
    late_run_id  uuid,                                                     -- the run that a late answer started
    created_at   timestamptz NOT NULL
);
CREATE INDEX human_loop_responses_of_session ON human_loop_responses (session_id);

-- The newest state of each item of a run's list.
CREATE TABLE todo_items (
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    todo_id      text        NOT NULL,
    content      text        NOT NULL,
    status       text        NOT NULL CHECK (status IN ('todo', 'doing', 'done', 'canceled')),
    item_order   bigint      NOT NULL,
    first_seen   bigint      NOT NULL,                                     -- the event that brought it
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (run_id, todo_id)
);
CREATE INDEX todo_items_of_session ON todo_items (session_id);

-- What happened to each item. An item that a later list lacks was removed: its history stays.
CREATE TABLE todo_item_events (
    session_id   uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    run_id       uuid        NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    todo_id      text        NOT NULL,
    position     bigint      NOT NULL,                                     -- the event in the session's stream
    change       text        NOT NULL CHECK (change IN ('added', 'changed', 'removed')),
    content      text        NOT NULL,
    status       text        NOT NULL CHECK (status IN ('todo', 'doing', 'done', 'canceled')),
    item_order   bigint      NOT NULL,
    ts           timestamptz NOT NULL,
    CONSTRAINT todo_items_change_once_per_event PRIMARY KEY (run_id, position, todo_id)
);
CREATE INDEX todo_item_events_of_session ON todo_item_events (session_id);
