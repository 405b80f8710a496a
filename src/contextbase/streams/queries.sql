-- name: feed_heads
-- How far a project's feed goes. Whatever is up to here is readable: both counters move under a row lock that is held
-- to the end of its transaction, so nothing smaller appears later.
SELECT p.id, p.epoch, p.head, p.policy_version, h.number AS event_number
FROM projects p JOIN stream_heads h ON h.scope_kind = 'project' AND h.scope_id = p.id
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

-- name: stream_head
-- How far a scope's stream goes. Whatever is up to here is readable: the counter moves under a row lock that is held to
-- the end of its transaction, so nothing smaller appears later.
SELECT h.number, coalesce(h.epoch, p.epoch) AS epoch
FROM stream_heads h LEFT JOIN projects p ON p.id = h.project_id
WHERE h.scope_kind = $1 AND h.scope_id = $2

-- name: news
-- How far each of several streams goes, and its first $4 events after a number. One snapshot for all.
SELECT asked.place, h.number AS head, coalesce(h.epoch, p.epoch) AS epoch, e.*
FROM unnest($1::text[], $2::uuid[], $3::bigint[]) WITH ORDINALITY AS asked (kind, id, after, place)
JOIN stream_heads h ON h.scope_kind = asked.kind AND h.scope_id = asked.id
LEFT JOIN projects p ON p.id = h.project_id
LEFT JOIN LATERAL (
    SELECT s.number, s.kind, s.path, s.payload, s.content_hash, s.size, s.created_at,
           w.id AS principal_id, w.kind AS principal_kind, w.name AS principal_name
    FROM stream_events s LEFT JOIN principals w ON w.id = s.principal_id
    WHERE s.scope_kind = asked.kind AND s.scope_id = asked.id AND s.number > asked.after AND s.number <= h.number
    ORDER BY s.number
    LIMIT $4
) e ON true
ORDER BY asked.place, e.number

-- name: events_between
SELECT e.number, e.kind, e.path, e.payload, e.content_hash, e.size, e.created_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name
FROM stream_events e LEFT JOIN principals p ON p.id = e.principal_id
WHERE e.scope_kind = $1 AND e.scope_id = $2 AND e.number > $3 AND e.number <= $4
ORDER BY e.number
LIMIT $5

-- name: take_numbers_of_project
-- The row stays locked until the transaction ends, so that numbers become visible in order. The project's row first, as
-- a commit does that has events: whoever took them the other way round would wait for each other.
WITH project AS (SELECT id FROM projects WHERE id = $1 FOR KEY SHARE)
UPDATE stream_heads h SET number = h.number + $2 FROM project
WHERE h.scope_kind = 'project' AND h.scope_id = project.id
RETURNING h.number

-- name: take_numbers
-- The same for other scopes: no project's row is touched, and the first event makes the stream. In order, so that two
-- who append to several streams do not wait for each other.
INSERT INTO stream_heads (scope_kind, scope_id, epoch, number)
SELECT kind, id, gen_random_uuid(), count FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS taken (kind, id, count)
ORDER BY kind, id
ON CONFLICT (scope_kind, scope_id) DO UPDATE SET number = stream_heads.number + excluded.number
RETURNING scope_kind, scope_id, number

-- name: insert_events
-- Bodies in order of hash, as a purge locks contents: so the two cannot deadlock.
INSERT INTO stream_events (scope_kind, scope_id, number, kind, principal_id, path, payload, content_hash, size)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[], $5::uuid[], $6::text[], $7::jsonb[], $8::bytea[],
                     $9::bigint[]) AS event (scope_kind, scope_id, number, kind, principal_id, path, payload, body, size)
ORDER BY body

-- name: prune_events
-- At most $3 events of one kind of scope that are older than $2. What another server is removing is left to it.
DELETE FROM stream_events
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM stream_events
    WHERE scope_kind = $1 AND scope_kind <> 'session' AND created_at < clock_timestamp() - $2::interval
    ORDER BY created_at LIMIT $3
    FOR UPDATE SKIP LOCKED
))

-- name: delete_events
-- The oldest $3 events of a scope.
DELETE FROM stream_events
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM stream_events WHERE scope_kind = $1 AND scope_id = $2 ORDER BY number LIMIT $3 FOR UPDATE
))

-- name: delete_stream
-- What was appended meanwhile goes with it.
DELETE FROM stream_heads WHERE scope_kind = $1 AND scope_id = $2

-- name: notify
SELECT pg_notify($1, scope) FROM unnest($2::text[]) AS hinted (scope)

-- name: still_there
-- Finds out whether the listening connection still reaches the database.
SELECT 1
