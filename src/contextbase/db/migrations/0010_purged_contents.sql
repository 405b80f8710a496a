-- Purged contents leave tombstones ---------------------------------------------------------------------------------

-- A purged content's versions refer to a tombstone in its place: a blob without bytes, under a random name. So nothing
-- is left under the content's own name, and whoever stores it in another project stores it like any other. In the
-- projects it was purged from it is not taken again from those who could have seen it there.
CREATE TABLE purged_contents (
    project_id   uuid        NOT NULL REFERENCES projects,
    purged_hash  bytea       NOT NULL CHECK (octet_length(purged_hash) = 32),
    tombstone    bytea       NOT NULL REFERENCES blobs ON DELETE CASCADE,
    purged_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, purged_hash, tombstone)  -- it may be purged twice
);
CREATE INDEX purged_contents_hash ON purged_contents (purged_hash);
CREATE INDEX purged_contents_tombstone ON purged_contents (tombstone);

-- What was purged before had its tombstone under its own name.
CREATE TEMPORARY TABLE buried ON COMMIT DROP AS
SELECT hash, size, purged_at, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) AS tombstone
FROM blobs WHERE purged_at IS NOT NULL;

INSERT INTO blobs (hash, size, purged_at) SELECT tombstone, size, purged_at FROM buried;

INSERT INTO purged_contents (project_id, purged_hash, tombstone, purged_at)
SELECT DISTINCT r.project_id, b.hash, b.tombstone, b.purged_at
FROM buried b
JOIN (
    SELECT project_id, content_hash FROM versions
    UNION SELECT project_id, sent_hash FROM versions
    UNION SELECT project_id, content_hash FROM side_versions
) r ON r.content_hash = b.hash;

UPDATE versions v SET content_hash = b.tombstone FROM buried b WHERE v.content_hash = b.hash;
UPDATE versions v SET sent_hash = b.tombstone FROM buried b WHERE v.sent_hash = b.hash;
UPDATE side_versions s SET content_hash = b.tombstone FROM buried b WHERE s.content_hash = b.hash;
DELETE FROM uploads u USING buried b WHERE u.content_hash = b.hash;
UPDATE blobs SET live = false, purged_at = NULL WHERE hash IN (SELECT hash FROM buried);  -- GC removes what is left
