-- One row that /readyz writes now and then: a database that takes no writes is found out before a commit meets it.
CREATE TABLE write_probe (
    only_row   boolean      PRIMARY KEY DEFAULT true CHECK (only_row),
    written_at timestamptz  NOT NULL
);
