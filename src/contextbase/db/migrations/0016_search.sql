-- The index for search: which blobs hold which three bytes. It is made from contents in the background and can be made
-- again from nothing, so that backups leave it out. See docs/adr on search.

-- The blobs that were looked into, by a small number of their own.
CREATE TABLE search_blobs (
    id        integer  PRIMARY KEY,
    hash      bytea    UNIQUE REFERENCES blobs ON DELETE SET NULL,  -- NULL: it is gone, and its number is to leave the lists
    left_out  text     CHECK (left_out IN ('binary', 'too_large', 'unreadable'))  -- why it is in no list
);
CREATE INDEX search_blobs_gone ON search_blobs (id) WHERE hash IS NULL;
-- What a search has to name as not searched.
CREATE INDEX search_blobs_left_out ON search_blobs (id) WHERE left_out <> 'binary';

-- Blobs whose numbers follow each other, with lists of their own.
CREATE TABLE search_segments (
    number  integer  PRIMARY KEY,
    first   integer  NOT NULL,
    last    integer  NOT NULL CHECK (first <= last),
    CONSTRAINT search_segments_stay_in_a_window CHECK (first >> 16 = last >> 16),
    CONSTRAINT search_segments_share_no_blob EXCLUDE USING gist (int4range(first, last, '[]') WITH &&)
);

-- The numbers of a segment's blobs with three bytes: the last 16 bits of each, in order, the lower byte first. Without a
-- foreign key, which would be looked at for each of some 100,000 rows: they are written and removed with their segment.
CREATE TABLE search_postings (
    segment  integer  NOT NULL,
    gram     integer  NOT NULL,
    ids      bytea    NOT NULL,
    PRIMARY KEY (segment, gram)
);
ALTER TABLE search_postings ALTER COLUMN ids SET STORAGE EXTERNAL;  -- it does not compress, and is read in whole

-- Up to which commit all contents of a project have a number.
CREATE TABLE search_progress (
    project_id  uuid         PRIMARY KEY REFERENCES projects,
    seq         bigint       NOT NULL CHECK (seq >= 0),
    stepped_at  timestamptz  NOT NULL DEFAULT clock_timestamp()
);
