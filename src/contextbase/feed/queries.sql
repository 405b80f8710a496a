-- name: heads
-- How far a project's feed goes. Whatever is up to here is readable: both counters move under a row lock that is held
-- to the end of its transaction, so nothing smaller appears later.
SELECT p.id, p.epoch, p.head, p.policy_version, h.number AS event_number
FROM projects p JOIN event_heads h ON h.project_id = p.id
WHERE p.id = $1 AND p.deleted_at IS NULL

-- name: commits_between
SELECT c.seq, c.message, c.committed_at, c.operator_type,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name
FROM commits c JOIN principals p ON p.id = c.principal_id
WHERE c.project_id = $1 AND c.seq > $2 AND c.seq <= $3
ORDER BY c.seq
LIMIT $4

-- name: changes_between
-- What these commits did to each node: its state before and after, and where it is now.
SELECT v.seq, v.node_id, v.path, v.kind, v.content_hash, v.size, v.executable,
       before.path AS path_before, before.kind AS kind_before, now.path AS path_now
FROM versions v
LEFT JOIN versions before
    ON before.project_id = v.project_id AND before.node_id = v.node_id AND before.number = v.number - 1
JOIN versions now
    ON now.project_id = v.project_id AND now.node_id = v.node_id AND now.replaced_seq IS NULL
WHERE v.project_id = $1 AND v.seq > $2 AND v.seq <= $3
ORDER BY v.seq, v.path

-- name: set_aside_between
-- What of these commits is not in the tree, and where its node is now (if it is anywhere).
SELECT s.seq, s.id, s.path, s.reason, r.id AS review_id, coalesce(now.path, s.path) AS path_now
FROM side_versions s
LEFT JOIN versions now
    ON now.project_id = s.project_id AND now.node_id = s.node_id AND now.replaced_seq IS NULL
LEFT JOIN review_items r ON r.project_id = s.project_id AND r.side_version_id = s.id
WHERE s.project_id = $1 AND s.seq > $2 AND s.seq <= $3
ORDER BY s.seq, s.path

-- name: events_between
SELECT e.number, e.kind, e.path, e.payload, e.created_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name
FROM events e LEFT JOIN principals p ON p.id = e.principal_id
WHERE e.project_id = $1 AND e.number > $2 AND e.number <= $3
ORDER BY e.number
LIMIT $4

-- name: take_event_numbers
-- The row stays locked until the transaction ends, so that numbers become visible in order. The project's row first, as
-- a commit does that has events: whoever took them the other way round would wait for each other.
WITH project AS (SELECT id FROM projects WHERE id = $1 FOR KEY SHARE)
UPDATE event_heads h SET number = h.number + $2 FROM project WHERE h.project_id = project.id RETURNING h.number

-- name: insert_events
INSERT INTO events (project_id, number, kind, principal_id, path, payload)
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::uuid[], $5::text[], $6::jsonb[])

-- name: prune_events
DELETE FROM events WHERE created_at < clock_timestamp() - $1::interval

-- name: notify
SELECT pg_notify($1, project_id) FROM unnest($2::text[]) AS hinted (project_id)

-- name: still_there
-- Finds out whether the listening connection still reaches the database.
SELECT 1
