-- name: items
-- Review items, newest first, with their side, their people and where their nodes are now; $8: one of them.
SELECT r.id, r.seq, r.node_id, r.path, r.base_path, r.base_seq, r.state, r.reason, r.base_number, r.ours_number,
       r.side_version_id, r.conflicts, r.checked_seq, r.created_at, r.suggestion, r.claimed_at, r.closed_at,
       r.closed_seq, s.kind, s.content_hash, s.size, s.executable, s.mime,
       a.id AS author_id, a.kind AS author_kind, a.name AS author_name, a.is_owner AS author_is_owner,
       c.id AS claimer_id, c.kind AS claimer_kind, c.name AS claimer_name, c.is_owner AS claimer_is_owner,
       z.id AS closer_id, z.kind AS closer_kind, z.name AS closer_name, z.is_owner AS closer_is_owner,
       node.path AS node_now, base_node.path AS base_node_now, base_node.node_id AS base_node_id,
       (SELECT count(*) FROM review_comments m WHERE m.project_id = r.project_id AND m.review_id = r.id) AS comments
FROM review_items r
JOIN side_versions s ON s.project_id = r.project_id AND s.id = r.side_version_id
JOIN principals a ON a.id = r.author_id
LEFT JOIN principals c ON c.id = r.claimed_by
LEFT JOIN principals z ON z.id = r.closed_by
LEFT JOIN versions node ON node.project_id = r.project_id AND node.node_id = r.node_id AND node.replaced_seq IS NULL
LEFT JOIN versions base ON base.project_id = r.project_id AND base.path = r.base_path AND base.seq <= r.base_seq
    AND (base.replaced_seq IS NULL OR base.replaced_seq > r.base_seq) AND base.kind <> 'deleted'
LEFT JOIN versions base_node ON base_node.project_id = r.project_id AND base_node.node_id = base.node_id
    AND base_node.replaced_seq IS NULL
WHERE r.project_id = $1
  AND ($2::text IS NULL OR r.state = $2)
  AND ($3::text IS NULL OR r.path = $3 OR (r.path >= $3 || '/' AND r.path < $3 || '0'))
  AND ($4::uuid[] IS NULL OR r.author_id = ANY ($4))
  AND ($5::uuid[] IS NULL OR r.claimed_by = ANY ($5))
  AND ($6::uuid IS NULL OR r.id < $6)
  AND ($8::uuid IS NULL OR r.id = $8)
ORDER BY r.id DESC
LIMIT $7

-- name: entries_at
-- What stands at these paths in snapshot $3.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM versions
WHERE project_id = $1 AND path = ANY ($2::text[]) AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)
  AND kind <> 'deleted'

-- name: is_touched
-- Whether anything happened at these paths, or to these nodes, after a commit.
SELECT EXISTS (SELECT FROM versions WHERE project_id = $1 AND node_id = ANY ($2::uuid[]) AND seq > $4)
    OR EXISTS (SELECT FROM versions WHERE project_id = $1 AND path = ANY ($3::text[]) AND seq > $4)

-- name: commit_message
SELECT message FROM commits WHERE project_id = $1 AND seq = $2

-- name: comments
SELECT m.number, m.text, m.created_at, p.id, p.kind, p.name, p.is_owner
FROM review_comments m JOIN principals p ON p.id = m.author_id
WHERE m.project_id = $1 AND m.review_id = $2
ORDER BY m.number

-- name: hold_project
-- Whoever locks an item and tells of it holds the project first, as a commit that closes an item does: project, item,
-- events, audit, in this order, or they would wait for each other.
SELECT id FROM projects WHERE id = $1 FOR KEY SHARE

-- name: lock_item
-- Held while a comment gets its number.
SELECT state FROM review_items WHERE project_id = $1 AND id = $2 FOR UPDATE

-- name: add_comment
INSERT INTO review_comments (project_id, review_id, number, author_id, text)
SELECT $1, $2, 1 + count(*), $3, $4 FROM review_comments WHERE project_id = $1 AND review_id = $2
RETURNING number, created_at

-- name: claim
-- For somebody who says so, unless it is somebody else's ($4: even then).
UPDATE review_items SET claimed_by = $3, claimed_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND state = 'open' AND (claimed_by IS NULL OR claimed_by = $3 OR $4)
RETURNING id

-- name: release
UPDATE review_items SET claimed_by = NULL, claimed_at = NULL
WHERE project_id = $1 AND id = $2 AND state = 'open' AND claimed_by = $3
RETURNING id

-- name: refresh
-- What an open item looks like against a later head; $6: whether what was suggested for it still is about it.
UPDATE review_items
SET checked_seq = $3, ours_number = $4, conflicts = $5, suggestion = CASE WHEN $6 THEN suggestion END, reason = $7
WHERE project_id = $1 AND id = $2 AND state = 'open' AND checked_seq <= $3

-- name: mark_checked
-- Up to a head at which it was found untouched.
UPDATE review_items SET checked_seq = $3 WHERE project_id = $1 AND id = $2 AND state = 'open' AND checked_seq < $3

-- name: put_suggestion
UPDATE review_items SET suggestion = $3 WHERE project_id = $1 AND id = $2 AND state = 'open'

-- name: stale_items
-- Open items whose project has moved on since they were looked at: those that wait longest first.
SELECT r.project_id, r.id, p.head
FROM review_items r JOIN projects p ON p.id = r.project_id
WHERE r.state = 'open' AND r.checked_seq < p.head AND p.deleted_at IS NULL
ORDER BY r.checked_seq, r.id
LIMIT $1

-- name: unasked_items
-- Open items with conflicts that no resolver was asked about, oldest first, after $1.
SELECT r.project_id, r.id
FROM review_items r JOIN projects p ON p.id = r.project_id
WHERE r.state = 'open' AND r.suggestion IS NULL AND r.conflicts <> '[]' AND p.deleted_at IS NULL AND r.id > $1
ORDER BY r.id
LIMIT $2
