-- name: head_entries
-- What stands at these paths now.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND path = ANY ($2::text[]) AND replaced_seq IS NULL AND kind <> 'deleted'

-- name: base_entries
-- What stood at each of these paths in the snapshot its writer saw: the last that came there, if it had not left yet.
SELECT asked.path AS asked_path, asked.base AS asked_base,
       v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable, v.mime
FROM unnest($2::text[], $3::bigint[]) AS asked (path, base)
CROSS JOIN LATERAL (
    SELECT * FROM versions
    WHERE project_id = $1 AND path = asked.path AND seq <= asked.base AND kind <> 'deleted'
    ORDER BY seq DESC LIMIT 1
) v
WHERE v.replaced_seq IS NULL OR v.replaced_seq > asked.base

-- name: seqs_of_versions
-- The commit in which each of these versions came to this path, and where its node is now.
SELECT asked.path, asked.number, v.seq, h.path AS path_now
FROM unnest($2::text[], $3::integer[]) AS asked (path, number)
CROSS JOIN LATERAL (
    SELECT node_id, seq FROM versions
    WHERE project_id = $1 AND path = asked.path AND number = asked.number AND kind <> 'deleted'
    ORDER BY seq DESC LIMIT 1
) v
JOIN versions h ON h.project_id = $1 AND h.node_id = v.node_id AND h.replaced_seq IS NULL

-- name: node_heads
-- Where these nodes are now; deleted ones too.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND node_id = ANY ($2::uuid[]) AND replaced_seq IS NULL

-- name: versions_between
-- All versions that commits after $2 and up to $3 made, in their order; no more than $4.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4

-- name: entries_below
-- Up to $3 entries inside each of these folders.
SELECT asked.folder, below.path
FROM unnest($2::text[]) AS asked (folder)
CROSS JOIN LATERAL (
    SELECT v.path FROM versions v
    WHERE v.project_id = $1 AND v.path > asked.folder || '/' AND v.path < asked.folder || '0'
      AND v.replaced_seq IS NULL AND v.kind <> 'deleted'
    ORDER BY v.path LIMIT $3
) below

-- name: analyze_versions
-- Tell the planner how many there are.
ANALYZE versions

-- name: entries_since
-- Up to $4 entries below the folder $2 that are not what snapshot $3 has there.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND path > $2 || '/' AND path < $2 || '0' AND replaced_seq IS NULL AND kind <> 'deleted' AND seq > $3
ORDER BY path LIMIT $4

-- name: nodes_below
-- Which of these nodes stood below the folder $2 in snapshot $3.
SELECT node_id
FROM versions
WHERE project_id = $1 AND node_id = ANY ($4::uuid[]) AND path > $2 || '/' AND path < $2 || '0' AND kind <> 'deleted'
  AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)

-- name: answered
-- The answers of requests that were made before.
SELECT asked.principal_id, asked.key, r.request_hash, r.answer
FROM unnest($2::uuid[], $3::text[]) AS asked (principal_id, key)
JOIN answered_requests r ON r.project_id = $1 AND r.principal_id = asked.principal_id AND r.key = asked.key

-- name: close_reviews
-- Close those that are open; says of each whose it was, and who closed it.
UPDATE review_items r
SET state = c.state, closed_by = c.closed_by, closed_seq = c.seq, closed_at = clock_timestamp()
FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::bigint[]) AS c (id, state, closed_by, seq)
JOIN principals p ON p.id = c.closed_by
JOIN review_items i ON i.project_id = $1 AND i.id = c.id
JOIN principals a ON a.id = i.author_id
WHERE r.project_id = $1 AND r.id = c.id AND r.state = 'open'
RETURNING r.id, r.path, r.state, r.closed_by, r.closed_seq, r.side_version_id,
          p.kind AS closer_kind, p.name AS closer_name, a.kind AS author_kind, a.name AS author_name

-- name: opened_project
SELECT head, epoch, policy_version FROM projects WHERE id = $1 AND deleted_at IS NULL

-- name: project_policy
-- A project's rules, all in one reading.
SELECT p.policy_version, p.default_level,
       EXISTS (SELECT FROM purged_contents c WHERE c.project_id = p.id) AS has_purged,
       (SELECT coalesce(json_agg(json_build_object(
            'id', r.id, 'pattern', r.pattern, 'level', r.level, 'principal_id', r.principal_id,
            'group_id', r.group_id, 'subject_name', coalesce(pr.kind || ':' || pr.name, g.name, ''))), '[]')
        FROM path_rules r LEFT JOIN principals pr ON pr.id = r.principal_id LEFT JOIN groups g ON g.id = r.group_id
        WHERE r.project_id = p.id)::text AS path_rules,
       (SELECT coalesce(json_agg(json_build_object('pattern', m.pattern, 'strategy', m.strategy) ORDER BY m.position),
                        '[]')
        FROM merge_rules m WHERE m.project_id = p.id)::text AS merge_rules,
       (SELECT coalesce(json_object_agg(k.principal_id, k.rank), '{}') FROM ranks k
        WHERE k.project_id = p.id)::text AS ranks,
       (SELECT coalesce(json_agg(json_build_object('pattern', l.pattern, 'binding', l.binding) ORDER BY l.position),
                        '[]')
        FROM lease_rules l WHERE l.project_id = p.id)::text AS lease_rules
FROM projects p WHERE p.id = $1 AND p.deleted_at IS NULL

-- name: groups_of
SELECT principal_id, group_id FROM group_members WHERE principal_id = ANY ($1::uuid[])

-- name: head_authors
-- Who wrote the versions at the head of these nodes: for the strategy 'priority'.
SELECT v.node_id, c.principal_id FROM versions v JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
WHERE v.project_id = $1 AND v.node_id = ANY ($2::uuid[]) AND v.replaced_seq IS NULL

-- name: numbered_names
-- Entries named like `name (…`, beside each of these: who may only add takes the first free number.
SELECT v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable, v.mime
FROM unnest($2::text[]) AS asked (prefix)
JOIN versions v ON v.project_id = $1 AND v.path >= asked.prefix || ' (' AND v.path < asked.prefix || ' )'
WHERE v.replaced_seq IS NULL AND v.kind <> 'deleted'

-- name: inline_contents
SELECT hash, content FROM blob_contents WHERE hash = ANY ($1::bytea[])

-- name: record_upload
INSERT INTO uploads (project_id, principal_id, content_hash, size) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id, principal_id, content_hash) DO UPDATE SET uploaded_at = clock_timestamp()

-- name: own_uploads
-- With the first $4 bytes of the small ones.
SELECT u.content_hash, u.size, substring(c.content FROM 1 FOR $4) AS start
FROM uploads u LEFT JOIN blob_contents c ON c.hash = u.content_hash
WHERE u.project_id = $1 AND u.principal_id = $2 AND u.content_hash = ANY ($3::bytea[])

-- part: places_of_content
-- Where the content that is sought stands, stood or was set aside.
    (
        SELECT v.path, h.path AS path_now
        FROM versions v
        JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
        WHERE v.project_id = $1 AND v.content_hash = sought.hash
        LIMIT 200
    )
    UNION ALL
    (
        SELECT s.path, coalesce(h.path, s.path)
        FROM side_versions s
        LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
        WHERE s.project_id = $1 AND s.content_hash = sought.hash
        LIMIT 200
    )

-- name: paths_of_contents
-- Where these contents stand, stood or were set aside: by path then, and path now; some places of each.
SELECT sought.hash AS content_hash, sought.size, sought.purged_at IS NOT NULL AS purged, place.path, place.path_now
FROM blobs sought
CROSS JOIN LATERAL (
    -- use: places_of_content
) place
WHERE sought.hash = ANY ($2::bytea[])

-- name: purged_places
-- Where these contents stood, were sent for or were set aside in a project that they were purged from: by path then, and
-- path now; some places of each.
SELECT sought.purged_hash, place.path, place.path_now
FROM (SELECT project_id, purged_hash, tombstone AS hash FROM purged_contents) sought
CROSS JOIN LATERAL (
    -- use: places_of_content
    UNION ALL
    (
        SELECT v.path, h.path
        FROM versions v
        JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
        WHERE v.project_id = $1 AND v.sent_hash = sought.hash
        LIMIT 200
    )
) place
WHERE sought.project_id = $1 AND sought.purged_hash = ANY ($2::bytea[])

-- name: forget_answers
DELETE FROM answered_requests WHERE answered_at < $1

-- name: forget_uploads
DELETE FROM uploads WHERE uploaded_at < $1

-- name: snapshot_page
-- Snapshot $5's entries in the path range ($2, $3), after $4. Who may not see everything must also be allowed to see
-- where their nodes are now: node_heads.
SELECT v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable, v.mime, v.base_number,
       v.merged_number, v.sent_hash
FROM versions v
WHERE v.project_id = $1 AND v.path >= $2 AND v.path < $3 AND v.path > $4
  AND v.seq <= $5 AND (v.replaced_seq IS NULL OR v.replaced_seq > $5) AND v.kind <> 'deleted'
ORDER BY v.path
LIMIT $6

-- name: snapshot_paths
-- As `opened_project`, with what stands at each of these paths in a snapshot (NULL: the head), in one reading; a row
-- without a path if nothing does. Each entry comes with where its node is now: who reads an old snapshot must be allowed
-- to see both places. The first LIMIT leaves nothing out: it makes PostgreSQL expect few paths, and keep one plan.
SELECT p.head, p.epoch, p.policy_version, found.*
FROM projects p
LEFT JOIN LATERAL (
    SELECT asked.seq AS asked_seq, v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable,
           v.mime, v.base_number, v.merged_number, v.sent_hash, h.path AS path_now
    FROM (SELECT * FROM unnest($2::text[], $3::bigint[]) LIMIT cardinality($2)) AS asked (path, seq)
    CROSS JOIN LATERAL (  -- the last that came there: it stands there if it had not left yet
        SELECT * FROM versions
        WHERE project_id = p.id AND path = asked.path AND seq <= coalesce(asked.seq, p.head) AND kind <> 'deleted'
        ORDER BY seq DESC LIMIT 1
    ) v
    JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
    WHERE v.replaced_seq IS NULL OR v.replaced_seq > coalesce(asked.seq, p.head)
) found ON true
WHERE p.id = $1 AND p.deleted_at IS NULL

-- name: node_of_path
-- The node at a path now; if there is none, the one that was there last; and where it is now.
SELECT v.node_id, h.path AS path_now
FROM (
    SELECT node_id FROM versions
    WHERE project_id = $1 AND path = $2
    ORDER BY (kind <> 'deleted' AND replaced_seq IS NULL) DESC, seq DESC
    LIMIT 1
) v
JOIN versions h ON h.project_id = $1 AND h.node_id = v.node_id AND h.replaced_seq IS NULL

-- name: nodes_of_path
-- Likewise, every node that was ever at the path, in that order: for readers who may not see where the last one went.
SELECT v.node_id, h.path AS path_now
FROM (
    SELECT node_id, bool_or(kind <> 'deleted' AND replaced_seq IS NULL) AS is_there, max(seq) AS last_seq
    FROM versions
    WHERE project_id = $1 AND path = $2
    GROUP BY node_id
) v
JOIN versions h ON h.project_id = $1 AND h.node_id = v.node_id AND h.replaced_seq IS NULL
ORDER BY v.is_there DESC, v.last_seq DESC
LIMIT $3 OFFSET $4

-- name: version_page
-- A node's versions, newest first, below a number, with who wrote each and where the node is now.
SELECT v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable, v.mime, v.base_number,
       v.merged_number, v.sent_hash, h.path AS path_now,
       p.kind AS principal_kind, p.name AS principal_name, c.operator_type, c.message, c.committed_at
FROM versions v
JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
JOIN principals p ON p.id = c.principal_id
WHERE v.project_id = $1 AND v.node_id = $2 AND v.number < $3
ORDER BY v.number DESC
LIMIT $4

-- name: side_page
-- What was set aside at a path, or of a node, newest first, before $4, with who wrote it and its review item.
SELECT s.id, s.seq, s.node_id, s.path, s.reason, s.kind, s.content_hash, s.size, s.executable, s.mime, s.base_number,
       coalesce(h.path, s.path) AS path_now, r.id AS review_id, r.state AS review_state,
       p.kind AS principal_kind, p.name AS principal_name, c.operator_type, c.message, c.committed_at
FROM side_versions s
JOIN commits c ON c.project_id = s.project_id AND c.seq = s.seq
JOIN principals p ON p.id = c.principal_id
LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
LEFT JOIN review_items r ON r.project_id = s.project_id AND r.side_version_id = s.id
WHERE s.project_id = $1 AND (s.path = $2 OR s.node_id = $3) AND ($4::uuid IS NULL OR s.id < $4)
ORDER BY s.id DESC
LIMIT $5

-- name: side_version
SELECT s.path, s.kind, s.content_hash, s.size, s.mime, coalesce(h.path, s.path) AS path_now
FROM side_versions s
LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
WHERE s.project_id = $1 AND s.id = $2

-- name: log_page
-- A project's commits, newest first, before a seq.
SELECT c.seq, c.id, c.operator_type, c.message, c.committed_at, c.run, p.kind AS principal_kind, p.name AS principal_name
FROM commits c JOIN principals p ON p.id = c.principal_id
WHERE c.project_id = $1 AND c.seq < $2
ORDER BY c.seq DESC
LIMIT $3

-- name: log_page_of_run
-- Likewise, those of a run; $5: made by these principals, or (NULL) by anybody.
SELECT c.seq, c.id, c.operator_type, c.message, c.committed_at, c.run, p.kind AS principal_kind, p.name AS principal_name
FROM commits c JOIN principals p ON p.id = c.principal_id
WHERE c.project_id = $1 AND c.seq < $2 AND c.run = $4 AND ($5::uuid[] IS NULL OR c.principal_id = ANY ($5))
ORDER BY c.seq DESC
LIMIT $3

-- name: log_page_of_principals
-- Likewise, those these principals made.
SELECT c.seq, c.id, c.operator_type, c.message, c.committed_at, c.run, p.kind AS principal_kind, p.name AS principal_name
FROM commits c JOIN principals p ON p.id = c.principal_id
WHERE c.project_id = $1 AND c.seq < $2 AND c.principal_id = ANY ($4::uuid[])
ORDER BY c.seq DESC
LIMIT $3

-- name: log_page_of_node
-- Likewise, those that touched a node; $5: made by these principals, or (NULL) by anybody; $6: of a run, or (NULL) any.
SELECT c.seq, c.id, c.operator_type, c.message, c.committed_at, c.run, p.kind AS principal_kind, p.name AS principal_name
FROM (
    SELECT v.seq FROM versions v WHERE v.project_id = $1 AND v.node_id = $4 AND v.seq < $2
    UNION SELECT s.seq FROM side_versions s WHERE s.project_id = $1 AND s.node_id = $4 AND s.seq < $2
) touched
CROSS JOIN LATERAL (SELECT * FROM commits c WHERE c.project_id = $1 AND c.seq = touched.seq LIMIT 1) c
JOIN principals p ON p.id = c.principal_id
WHERE ($5::uuid[] IS NULL OR c.principal_id = ANY ($5)) AND ($6::text IS NULL OR c.run = $6)
ORDER BY c.seq DESC
LIMIT $3

-- name: log_changes
-- What these commits did, whole or ($3) to one node: new versions, and what was set aside. (Other states of a node are
-- looked up one by one, so that a plan made before the tables were analyzed is no worse.)
SELECT v.seq, v.node_id, v.number, v.path, v.kind, v.content_hash, v.size,
       b.path AS path_before, b.kind AS kind_before, b.seq AS seq_before, f.seq AS fork_seq, f.path AS fork_path,
       h.path AS path_now, NULL AS set_aside, NULL::uuid AS side_id
FROM versions v
CROSS JOIN LATERAL (
    SELECT path FROM versions o WHERE o.project_id = $1 AND o.node_id = v.node_id AND o.replaced_seq IS NULL LIMIT 1
) h
LEFT JOIN LATERAL (
    SELECT path, kind, seq FROM versions o
    WHERE o.project_id = $1 AND o.node_id = v.node_id AND o.number = v.number - 1 LIMIT 1
) b ON true
LEFT JOIN LATERAL (  -- what it was made from, if that was overtaken
    SELECT path, seq FROM versions o
    WHERE o.project_id = $1 AND o.node_id = v.node_id AND o.number = v.base_number AND o.number < v.number - 1 LIMIT 1
) f ON true
WHERE v.project_id = $1 AND v.seq = ANY ($2::bigint[]) AND ($3::uuid IS NULL OR v.node_id = $3)
UNION ALL
SELECT s.seq, s.node_id, s.base_number, s.path, s.kind, s.content_hash, s.size,
       NULL, NULL, NULL, NULL, NULL, coalesce(h.path, s.path), s.reason, s.id
FROM side_versions s
LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
WHERE s.project_id = $1 AND s.seq = ANY ($2::bigint[]) AND ($3::uuid IS NULL OR s.node_id = $3)
ORDER BY seq DESC, path
LIMIT $4

-- name: commit_places
-- Every place that these commits are about, newest first: where a change stands, stood before, and its node is now.
SELECT v.seq, v.path, CASE WHEN b.kind <> 'deleted' THEN b.path END AS path_before, h.path AS path_now
FROM versions v
JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
LEFT JOIN versions b ON b.project_id = v.project_id AND b.node_id = v.node_id AND b.number = v.number - 1
WHERE v.project_id = $1 AND v.seq = ANY ($2::bigint[])
UNION ALL
SELECT s.seq, s.path, NULL, h.path
FROM side_versions s
LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
WHERE s.project_id = $1 AND s.seq = ANY ($2::bigint[])
ORDER BY seq DESC
LIMIT $3

-- name: principals_named
-- Principals of a name, of one kind or (NULL) of any.
SELECT id FROM principals WHERE name = $1 AND ($2::text IS NULL OR kind = $2)

-- name: principals_by_id
-- How people name these principals.
SELECT id, kind, name FROM principals WHERE id = ANY ($1::uuid[])

-- part: audit_rows
SELECT a.number, a.at, a.operator_type, a.token_id, a.action, a.path, a.node_id, a.base_seq, a.seq, a.old_hash,
       a.new_hash, a.strategy, a.summary, a.origin, a.trace_id, a.details, a.mac,
       p.kind AS principal_kind, p.name AS principal_name
FROM audit a LEFT JOIN principals p ON p.id = a.principal_id

-- part: audit_filter
-- $6 is a path, meaning what is below it too; $7 is how the details of a rename, or of a commit of several changes,
-- spell it: a first sieve.
  AND ($4::uuid[] IS NULL OR a.principal_id = ANY ($4))
  AND ($5::text IS NULL OR a.action = $5)
  AND ($6::text IS NULL OR a.path = $6 OR (a.path >= $6 || '/' AND a.path < $6 || '0')
       OR strpos(a.details, $7) > 0)
  AND ($8::timestamptz IS NULL OR a.at >= $8) AND ($9::timestamptz IS NULL OR a.at < $9)
  AND ($10::bigint IS NULL OR a.seq >= $10) AND ($11::bigint IS NULL OR a.seq <= $11)
  AND ($12::text IS NULL OR a.operator_type = $12)
  AND ($13::uuid IS NULL OR a.node_id = $13 OR strpos(a.details, $13::text) > 0)

-- name: audit_before
-- A chain's rows below a number, newest first.
-- use: audit_rows
WHERE a.chain = $1 AND a.number < $2
  -- use: audit_filter
ORDER BY a.number DESC
LIMIT $3

-- name: audit_after
-- Likewise, those above a number, oldest first.
-- use: audit_rows
WHERE a.chain = $1 AND a.number > $2
  -- use: audit_filter
ORDER BY a.number
LIMIT $3
