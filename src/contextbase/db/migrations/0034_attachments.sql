-- Files that people send with a message. The machine that works on its run puts them into the session's folder.
CREATE TABLE run_attachments (
    run_id        uuid     NOT NULL REFERENCES agent_runs ON DELETE CASCADE,
    position      integer  NOT NULL CHECK (position >= 0),
    name          text     NOT NULL CHECK (name <> ''),
    media_type    text     NOT NULL CHECK (media_type <> ''),
    size          bigint   NOT NULL CHECK (size >= 0),
    content_hash  bytea    NOT NULL,
    content_live  boolean  GENERATED ALWAYS AS (true) STORED,
    PRIMARY KEY (run_id, position),
    UNIQUE (run_id, name),
    CONSTRAINT run_attachments_keep_their_files FOREIGN KEY (content_hash, content_live) REFERENCES blobs (hash, live)
);
CREATE INDEX run_attachments_blob ON run_attachments (content_hash);
