-- name: tree_page
-- The basic index of snapshot $2, in path order, after a path.
SELECT v.path, v.kind, v.size, v.executable, v.mime, c.committed_at
FROM versions v JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
  AND v.path > $3
ORDER BY v.path
LIMIT $4

-- name: tree_changes
-- What stands in snapshot $3 where something came or went since snapshot $2: costs what changed between them.
WITH made AS (
    SELECT node_id, number, path FROM versions WHERE project_id = $1 AND seq > $2 AND seq <= $3
), places AS (
    SELECT path FROM made
    UNION
    SELECT v.path FROM made m JOIN versions v ON v.project_id = $1 AND v.node_id = m.node_id AND v.number = m.number - 1
)
SELECT p.path, v.kind, v.size, v.executable, v.mime, c.committed_at
FROM places p
LEFT JOIN LATERAL (
    SELECT * FROM versions
    WHERE project_id = $1 AND path = p.path AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)
      AND kind <> 'deleted'
    LIMIT 1
) v ON true
LEFT JOIN commits c ON c.project_id = $1 AND c.seq = v.seq

-- name: moved_since
-- The entries of snapshot $2 whose nodes are elsewhere now, and where: costs what changed since.
SELECT v.path, now.path AS path_now
FROM (SELECT DISTINCT node_id FROM versions WHERE project_id = $1 AND seq > $2) touched
JOIN versions v ON v.project_id = $1 AND v.node_id = touched.node_id AND v.seq <= $2 AND v.replaced_seq > $2
    AND v.kind <> 'deleted'
JOIN versions now ON now.project_id = $1 AND now.node_id = touched.node_id AND now.replaced_seq IS NULL
WHERE now.path <> v.path

-- name: project_history
-- What commits did to the tree, the newest first, before the version ($2, $3); of one node, or (NULL) of any. The commit's
-- audit row says from where, and for which message.
SELECT v.seq, v.node_id, v.path, v.kind, v.content_hash, v.size, c.committed_at, c.operator_type,
       p.kind AS principal_kind, p.name AS principal_name,
       before.path AS path_before, before.kind AS kind_before, before.content_hash AS hash_before,
       now.path AS path_now, a.origin, a.message_id
FROM versions v
JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
JOIN principals p ON p.id = c.principal_id
JOIN versions now ON now.project_id = v.project_id AND now.node_id = v.node_id AND now.replaced_seq IS NULL
LEFT JOIN versions before
    ON before.project_id = v.project_id AND before.node_id = v.node_id AND before.number = v.number - 1
LEFT JOIN LATERAL (
    SELECT origin, details::jsonb ->> 'message_id' AS message_id FROM audit
    WHERE chain = v.project_id AND seq = v.seq AND action = 'commit'
    LIMIT 1
) a ON true
WHERE v.project_id = $1 AND (v.seq, v.node_id) < ($2, $3) AND ($4::uuid IS NULL OR v.node_id = $4)
ORDER BY v.seq DESC, v.node_id DESC
LIMIT $5

-- name: head_committed_at
-- When the project's last commit was made; NULL: never.
SELECT c.committed_at FROM projects p LEFT JOIN commits c ON c.project_id = p.id AND c.seq = p.head WHERE p.id = $1

-- name: version_made
-- A version, and what its node held before.
SELECT v.content_hash, v.size, v.mime, before.content_hash AS hash_before
FROM versions v
LEFT JOIN versions before
    ON before.project_id = v.project_id AND before.node_id = v.node_id AND before.number = v.number - 1
WHERE v.project_id = $1 AND v.node_id = $2 AND v.number = $3

-- name: committed_at
SELECT committed_at FROM commits WHERE project_id = $1 AND seq = $2

-- name: last_operation_number
SELECT coalesce(max(number), 0) FROM file_operations WHERE workspace_id = $1

-- name: insert_operations
INSERT INTO file_operations (workspace_id, project_id, number, action, path, previous_path, kind, old_hash, new_hash, size,
                             executable, modified_ns, stamp, operator_type, principal_id, message_id, origin, at)
SELECT $1, $2, *
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[], $10::bigint[],
            $11::boolean[], $12::bigint[], $13::bigint[], $14::text[], $15::uuid[], $16::text[], $17::text[],
            $18::timestamptz[])

-- name: operations_page
-- A workspace's operations, the newest first, before a number.
SELECT o.*, p.kind AS principal_kind, p.name AS principal_name
FROM file_operations o JOIN principals p ON p.id = o.principal_id
WHERE o.workspace_id = $1 AND o.number < $2
ORDER BY o.number DESC
LIMIT $3

-- name: operations_of_file
-- Likewise, of one file: it stood at each of the paths $4 after the operation $5 and up to the operation $6.
SELECT o.*, p.kind AS principal_kind, p.name AS principal_name
FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS stood (path, after, until)
JOIN file_operations o ON o.workspace_id = $1 AND o.path = stood.path AND o.number > stood.after
    AND o.number <= stood.until AND o.number < $2
JOIN principals p ON p.id = o.principal_id
ORDER BY o.number DESC
LIMIT $3

-- name: renames_in_workspace
SELECT number, path, previous_path FROM file_operations
WHERE workspace_id = $1 AND action = 'rename'
ORDER BY number DESC

-- name: operations_since
-- A workspace's operations after a number, in order, as the tree is replayed from them.
SELECT number, action, path, previous_path, kind, new_hash, size, executable, modified_ns, stamp
FROM file_operations
WHERE workspace_id = $1 AND number > $2
ORDER BY number

-- name: last_sync
SELECT at FROM file_operations WHERE workspace_id = $1 AND action = 'sync' ORDER BY number DESC LIMIT 1

-- name: hashes_at
-- What stands at these paths in a snapshot.
SELECT path, content_hash FROM versions
WHERE project_id = $1 AND path = ANY ($3::text[]) AND seq <= $2 AND (replaced_seq IS NULL OR replaced_seq > $2)
  AND content_hash IS NOT NULL

-- name: commit_of_path
-- The commit that made what stands at a path in snapshot $2; its audit row says for which message.
SELECT v.seq, v.content_hash, c.committed_at, c.operator_type, p.kind AS principal_kind, p.name AS principal_name,
       a.message_id
FROM versions v
JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
JOIN principals p ON p.id = c.principal_id
LEFT JOIN LATERAL (
    SELECT details::jsonb ->> 'message_id' AS message_id FROM audit
    WHERE chain = v.project_id AND seq = v.seq AND action = 'commit'
    LIMIT 1
) a ON true
WHERE v.project_id = $1 AND v.path = $3 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)
  AND v.kind <> 'deleted'
