-- What the sandboxes of a project's sessions have beside its files.
CREATE TABLE project_environments (
    project_id uuid        PRIMARY KEY REFERENCES projects ON DELETE CASCADE,
    image      text,                                             -- of Docker; NULL: the machine's
    setup      text        NOT NULL DEFAULT '',                  -- for /bin/sh, run once on each machine
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
