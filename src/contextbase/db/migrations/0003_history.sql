-- What people do with history: named snapshots, undo of a run, the review queue, purged contents.


-- Commits ----------------------------------------------------------------------------------------------------------

-- The execution a commit belongs to, as its writer names it: what can be undone in one go.
ALTER TABLE commits ADD COLUMN run text CHECK (octet_length(run) BETWEEN 1 AND 200);
CREATE INDEX commits_run ON commits (project_id, run, seq) WHERE run IS NOT NULL;

-- The snapshot at a time.
CREATE INDEX commits_time ON commits (project_id, committed_at, seq);


-- Names for snapshots ----------------------------------------------------------------------------------------------

CREATE TABLE tags (
    project_id  uuid        NOT NULL,
    name        text        NOT NULL CHECK (name ~ '^[A-Za-z][A-Za-z0-9._-]{0,99}$'),
    seq         bigint      NOT NULL,
    message     text        NOT NULL DEFAULT '' CHECK (octet_length(message) <= 4096),
    created_by  uuid        NOT NULL REFERENCES principals,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, name),
    FOREIGN KEY (project_id, seq) REFERENCES commits (project_id, seq)
);


-- Review -----------------------------------------------------------------------------------------------------------

ALTER TABLE review_items
    ADD COLUMN claimed_by   uuid        REFERENCES principals,
    ADD COLUMN claimed_at   timestamptz,
    ADD COLUMN closed_by    uuid        REFERENCES principals,
    ADD COLUMN closed_at    timestamptz,
    ADD COLUMN closed_seq   bigint,                        -- the commit that settled it, if there was anything to change
    ADD COLUMN suggestion   text,                          -- JSON: what a resolver proposed, and who that was
    ADD CHECK ((claimed_by IS NULL) = (claimed_at IS NULL)),
    ADD CHECK ((state = 'open') = (closed_at IS NULL)),
    ADD FOREIGN KEY (project_id, closed_seq) REFERENCES commits (project_id, seq);
CREATE INDEX review_items_author ON review_items (project_id, author_id, created_at);

CREATE TABLE review_comments (
    project_id  uuid        NOT NULL,
    review_id   uuid        NOT NULL,
    number      integer     NOT NULL CHECK (number >= 1),
    author_id   uuid        NOT NULL REFERENCES principals,
    text        text        NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 10000),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, review_id, number),
    FOREIGN KEY (project_id, review_id) REFERENCES review_items (project_id, id)
);


-- Purge ------------------------------------------------------------------------------------------------------------

-- The bytes are gone for good; the row stays as the tombstone that versions refer to.
ALTER TABLE blobs ADD COLUMN purged_at timestamptz;
