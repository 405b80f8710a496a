-- name: head_entries
-- What stands at these paths now.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND path = ANY ($2::text[]) AND replaced_seq IS NULL AND kind <> 'deleted'

-- name: base_entries
-- What stood at each of these paths in the snapshot its writer saw.
SELECT asked.path AS asked_path, asked.base AS asked_base,
       v.node_id, v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.executable, v.mime
FROM unnest($2::text[], $3::bigint[]) AS asked (path, base)
JOIN versions v ON v.project_id = $1 AND v.path = asked.path AND v.seq <= asked.base
    AND (v.replaced_seq IS NULL OR v.replaced_seq > asked.base) AND v.kind <> 'deleted'

-- name: node_heads
-- Where these nodes are now; deleted ones too.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime
FROM versions
WHERE project_id = $1 AND node_id = ANY ($2::uuid[]) AND replaced_seq IS NULL

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

-- name: names_like
-- Which of these names are taken now, hidden ones included.
SELECT path FROM versions
WHERE project_id = $1 AND path = ANY ($2::text[]) AND replaced_seq IS NULL AND kind <> 'deleted'

-- name: answered
-- The answers of requests that were made before.
SELECT asked.principal_id, asked.key, r.request_hash, r.answer
FROM unnest($2::uuid[], $3::text[]) AS asked (principal_id, key)
JOIN answered_requests r ON r.project_id = $1 AND r.principal_id = asked.principal_id AND r.key = asked.key

-- name: record_answers
INSERT INTO answered_requests (project_id, principal_id, key, request_hash, answer)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[])

-- name: insert_new_blobs
-- Rows and bytes of small blobs that are not there yet; in order of hash, so that two transactions cannot deadlock.
WITH given AS (
    SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS blob (hash, content) ORDER BY hash
), made AS (
    INSERT INTO blobs (hash, size) SELECT hash, octet_length(content) FROM given
    ON CONFLICT (hash) DO NOTHING
    RETURNING hash
), stored AS (
    INSERT INTO blob_contents (hash, content) SELECT hash, content FROM given JOIN made USING (hash)
    ON CONFLICT (hash) DO NOTHING
)
SELECT hash FROM made

-- name: fresh_blobs
-- Those of these blobs that were put lately; locked against GC until the transaction ends.
SELECT hash FROM blobs
WHERE hash = ANY ($1::bytea[]) AND live AND renewed_at > clock_timestamp() - interval '1 hour'
FOR KEY SHARE

-- name: put_inline_blobs
-- Rows and bytes of small blobs, the rows first and in order of hash, so that two transactions cannot deadlock.
-- Fewer come back than went in while GC removes one of them.
WITH given AS (
    SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS blob (hash, content) ORDER BY hash
), renewed AS (
    INSERT INTO blobs (hash, size) SELECT hash, octet_length(content) FROM given
    ON CONFLICT (hash) DO UPDATE SET renewed_at = clock_timestamp() WHERE blobs.live
    RETURNING hash
), stored AS (
    INSERT INTO blob_contents (hash, content) SELECT hash, content FROM given JOIN renewed USING (hash)
    ON CONFLICT (hash) DO NOTHING
)
SELECT hash FROM renewed

-- name: insert_sides
-- Side versions, the nodes that so far have nothing else, and review items.
WITH bare AS (
    INSERT INTO nodes (project_id, id, created_seq) SELECT $1, * FROM unnest($2::uuid[], $3::bigint[])
    ON CONFLICT DO NOTHING
), kept AS (
    INSERT INTO side_versions (project_id, id, seq, node_id, path, reason, kind, content_hash, size, executable, mime,
                               base_number)
    SELECT $1, * FROM unnest($4::uuid[], $5::bigint[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::bytea[],
                             $11::bigint[], $12::boolean[], $13::text[], $14::integer[])
)
INSERT INTO review_items (project_id, id, seq, node_id, path, author_id, reason, base_number, ours_number,
                          side_version_id, conflicts)
SELECT $1, * FROM unnest($15::uuid[], $16::bigint[], $17::uuid[], $18::text[], $19::uuid[], $20::text[],
                         $21::integer[], $22::integer[], $23::uuid[], $24::text[])

-- name: project_policy
-- A project's rules, all in one reading.
SELECT p.policy_version, p.default_level,
       (SELECT coalesce(json_agg(json_build_object(
            'id', r.id, 'principal_id', r.principal_id, 'group_id', r.group_id,
            'name', coalesce(pr.name, g.name, ''), 'pattern', r.pattern, 'level', r.level)), '[]')
        FROM path_rules r LEFT JOIN principals pr ON pr.id = r.principal_id LEFT JOIN groups g ON g.id = r.group_id
        WHERE r.project_id = p.id)::text AS path_rules,
       (SELECT coalesce(json_agg(json_build_object('pattern', m.pattern, 'strategy', m.strategy) ORDER BY m.position),
                        '[]')
        FROM merge_rules m WHERE m.project_id = p.id)::text AS merge_rules,
       (SELECT coalesce(json_object_agg(k.principal_id, k.rank), '{}') FROM ranks k
        WHERE k.project_id = p.id)::text AS ranks
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
SELECT content_hash, size FROM uploads
WHERE project_id = $1 AND principal_id = $2 AND content_hash = ANY ($3::bytea[])

-- name: paths_of_contents
-- Where these contents stand, or stood: by path then, and path now.
SELECT v.content_hash, v.size, v.path, h.path AS path_now
FROM versions v
JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
WHERE v.project_id = $1 AND v.content_hash = ANY ($2::bytea[])
LIMIT 1000
