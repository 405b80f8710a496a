-- What the review queue needs to merge an item again: where its writer started from, and how far it was looked at.

ALTER TABLE review_items
    ADD COLUMN base_path    text    COLLATE "C",        -- base: what stood here in the snapshot base_seq, if anything
    ADD COLUMN base_seq     bigint,
    ADD COLUMN checked_seq  bigint  NOT NULL DEFAULT 0; -- the head it was last merged with

UPDATE review_items r
SET base_path = coalesce(v.path, r.path), base_seq = coalesce(v.seq, 0)
FROM review_items i
LEFT JOIN versions v ON v.project_id = i.project_id AND v.node_id = i.node_id AND v.number = i.base_number
WHERE r.project_id = i.project_id AND r.id = i.id;

ALTER TABLE review_items
    ALTER COLUMN base_path SET NOT NULL,
    ALTER COLUMN base_seq SET NOT NULL;

DROP INDEX review_items_open;
CREATE INDEX review_items_open ON review_items (project_id, id) WHERE state = 'open';
CREATE INDEX review_items_unchecked ON review_items (checked_seq) WHERE state = 'open';
