-- Sessions that their owners share: whom they let read, or drive them. And who asked for a run, if not the owner.

CREATE TABLE session_shares (
    session_id    uuid        NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    principal_id  uuid        NOT NULL REFERENCES users,
    level         text        NOT NULL CHECK (level IN ('read', 'drive')),
    shared_by     uuid        NOT NULL REFERENCES principals,
    shared_at     timestamptz NOT NULL,
    PRIMARY KEY (session_id, principal_id)
);
CREATE INDEX session_shares_of_person ON session_shares (principal_id, session_id);

ALTER TABLE agent_runs ADD COLUMN asked_by uuid REFERENCES principals;  -- NULL: the session's owner
CREATE INDEX agent_runs_asked_by ON agent_runs (asked_by) WHERE asked_by IS NOT NULL AND ended_at IS NULL;
