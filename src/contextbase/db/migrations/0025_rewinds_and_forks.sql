-- A conversation goes back to one of its messages, or goes on from there in a session of its own.

ALTER TABLE agent_runs
    ADD COLUMN profile    text  NOT NULL DEFAULT 'default' CHECK (profile <> ''),              -- how the agent works
    ADD COLUMN options    jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(options) = 'object'), -- for the agent program
    ADD COLUMN rewound_at timestamptz;                                     -- the conversation went back behind it

ALTER TABLE agent_sessions
    ADD COLUMN forked_from uuid REFERENCES agent_sessions ON DELETE SET NULL;
CREATE INDEX agent_sessions_forked_from ON agent_sessions (forked_from) WHERE forked_from IS NOT NULL;

CREATE INDEX session_snapshots_of_run ON session_snapshots (run_id, created_at DESC) WHERE run_id IS NOT NULL;

-- What the machine that has a session's folder has still to do before the next run: put back what a snapshot has.
CREATE TABLE session_rewinds (
    session_id   uuid        PRIMARY KEY REFERENCES agent_sessions ON DELETE CASCADE,
    id           uuid        NOT NULL,                                     -- of this rewind: a later one replaces it
    snapshot_id  uuid        REFERENCES session_snapshots,                 -- NULL: the agent begins without memory
    with_files   boolean     NOT NULL,                                     -- the uncommitted work goes back, too
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX session_rewinds_snapshot ON session_rewinds (snapshot_id) WHERE snapshot_id IS NOT NULL;
