-- name: lock_leases
-- A project's leases, held to the end of the transaction. What they are is read after this, by another statement: one
-- that had to wait for the lock would see them as they were before.
SELECT FROM lease_heads WHERE project_id = $1 FOR UPDATE

-- name: insert_lease_head
INSERT INTO lease_heads (project_id) SELECT id FROM projects WHERE id = $1 AND deleted_at IS NULL
ON CONFLICT DO NOTHING

-- name: leases
-- All of a project's, those too that have expired, oldest first, and the time; one row without a lease if there is none.
SELECT clock_timestamp() AS now, coalesce(h.last_token, 0) AS last_token,
       l.token, l.pattern, l.owner, l.node, l.boot, l.process_id, l.started, l.acquired_at, l.expires_at, l.depth
FROM (SELECT $1::uuid AS project_id) asked
LEFT JOIN lease_heads h ON h.project_id = asked.project_id
LEFT JOIN leases l ON l.project_id = asked.project_id
ORDER BY l.token

-- name: put_leases
-- Add leases, or give those that are there a new end and depth; remember the last token.
WITH head AS (UPDATE lease_heads SET last_token = $3 WHERE project_id = $1)
INSERT INTO leases (project_id, principal_id, token, pattern, owner, node, boot, process_id, started, acquired_at,
                    expires_at, depth)
SELECT $1, $2, * FROM unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[],
                             $11::timestamptz[], $12::timestamptz[], $13::integer[])
ON CONFLICT (project_id, token) DO UPDATE SET expires_at = excluded.expires_at, depth = excluded.depth

-- name: delete_leases
DELETE FROM leases WHERE project_id = $1 AND token = ANY ($2::bigint[])

-- name: held_leases
-- Those that count now, with whose they are: for the gate.
SELECT l.token, l.pattern, l.owner, p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name,
       p.is_owner AS principal_is_owner
FROM leases l JOIN principals p ON p.id = l.principal_id
WHERE l.project_id = $1 AND l.expires_at > clock_timestamp()
ORDER BY l.token
