-- name: insert_project
INSERT INTO projects (id, name, description, epoch, created_by)
VALUES ($1, $2, $3, $4, $5)
RETURNING id, name, description, head, epoch, policy_version, created_at, reads_gitignore, allowed_secrets

-- name: insert_stream_head
INSERT INTO stream_heads (scope_kind, scope_id) VALUES ('project', $1)

-- name: project_by_id
SELECT id, name, description, head, epoch, policy_version, created_at, reads_gitignore, allowed_secrets
FROM projects WHERE id = $1 AND deleted_at IS NULL

-- name: project_by_name
SELECT id, name, description, head, epoch, policy_version, created_at, reads_gitignore, allowed_secrets
FROM projects WHERE name = $1 AND deleted_at IS NULL

-- name: project_page
-- Projects by name, after a name: those with the ids $3, or (NULL) all.
SELECT id, name, description, head, epoch, policy_version, created_at, reads_gitignore, allowed_secrets
FROM projects WHERE deleted_at IS NULL AND name > $1 AND ($3::uuid[] IS NULL OR id = ANY ($3)) ORDER BY name LIMIT $2

-- name: set_sharing
-- NULL leaves a column as it is.
UPDATE projects
SET reads_gitignore = coalesce($2, reads_gitignore), allowed_secrets = coalesce($3, allowed_secrets)
WHERE id = $1 AND deleted_at IS NULL
RETURNING id, name, description, head, epoch, policy_version, created_at, reads_gitignore, allowed_secrets

-- name: delete_project
UPDATE projects SET deleted_at = clock_timestamp() WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: delete_project_events
-- The counter stays, as the project's row and its commits do.
DELETE FROM stream_events WHERE scope_kind = 'project' AND scope_id = $1

-- name: tree_page
-- Snapshot $5's entries in the path range ($2, $3), after $4: a version is in it from its seq until it is replaced.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM versions
WHERE project_id = $1 AND path >= $2 AND path < $3 AND path > $4
  AND seq <= $5 AND (replaced_seq IS NULL OR replaced_seq > $5) AND kind <> 'deleted'
ORDER BY path
LIMIT $6

-- name: children_page
-- One folder of snapshot $5, without reading what lies deeper: each step jumps to the next name in the path index.
-- $2 is the folder with its slash ('' for the root), $3 the end of its range, $4 the bound to start at. A name is a
-- folder that its contents imply when more path follows it; the next name is then past "name/", that is at "name0".
WITH RECURSIVE step AS (
    (
        SELECT v.*, position('/' IN substr(v.path, length($2) + 1)) AS slash
        FROM versions v
        WHERE v.project_id = $1 AND v.path >= $4 AND v.path < $3
          AND v.seq <= $5 AND (v.replaced_seq IS NULL OR v.replaced_seq > $5) AND v.kind <> 'deleted'
        ORDER BY v.path LIMIT 1
    )
    UNION ALL
    SELECT next.*
    FROM step, LATERAL (
        SELECT v.*, position('/' IN substr(v.path, length($2) + 1)) AS slash
        FROM versions v
        WHERE v.project_id = $1 AND v.path < $3
          AND v.path >= CASE WHEN step.slash > 0 THEN substr(step.path, 1, length($2) + step.slash - 1) || '0'
                             ELSE step.path || chr(1) END
          AND v.seq <= $5 AND (v.replaced_seq IS NULL OR v.replaced_seq > $5) AND v.kind <> 'deleted'
        ORDER BY v.path LIMIT 1
    ) next
)
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash,
       slash
FROM step
-- a folder that is a node of its own was listed as that node
WHERE slash = 0 OR NOT EXISTS (
    SELECT FROM versions v
    WHERE v.project_id = $1 AND v.path = substr(step.path, 1, length($2) + step.slash - 1)
      AND v.seq <= $5 AND (v.replaced_seq IS NULL OR v.replaced_seq > $5) AND v.kind = 'directory'
)
LIMIT $6

-- name: node_at
-- One node's state in a snapshot, a deleted one included.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM versions
WHERE project_id = $1 AND node_id = $2 AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)

-- name: path_at
-- What is at a path in a snapshot: the last that came there, if it had not left yet.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM (
    SELECT * FROM versions
    WHERE project_id = $1 AND path = $2 AND seq <= $3 AND kind <> 'deleted'
    ORDER BY seq DESC LIMIT 1
) v
WHERE replaced_seq IS NULL OR replaced_seq > $3

-- part: versions_for_json
    SELECT node_id, number, seq, path, kind, encode(content_hash, 'hex') AS content_hash, size, executable, mime,
           base_number, merged_number, encode(sent_hash, 'hex') AS sent_hash
    FROM versions v

-- name: diff_page
-- The nodes that differ between snapshots $2 and $3, by node, after $4: O(changes), whatever the tree's size.
WITH touched AS (
    SELECT DISTINCT node_id FROM versions
    WHERE project_id = $1 AND seq > $2 AND seq <= $3 AND node_id > $4
    ORDER BY node_id LIMIT $5
)
SELECT t.node_id AS touched_id, to_jsonb(b) AS before, to_jsonb(a) AS after
FROM touched t
LEFT JOIN LATERAL (
    -- use: versions_for_json
    WHERE v.project_id = $1 AND v.node_id = t.node_id AND v.seq <= $2
      AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
) b ON true
LEFT JOIN LATERAL (
    -- use: versions_for_json
    WHERE v.project_id = $1 AND v.node_id = t.node_id AND v.seq <= $3
      AND (v.replaced_seq IS NULL OR v.replaced_seq > $3) AND v.kind <> 'deleted'
) a ON true
ORDER BY t.node_id

-- name: chain_page
-- A node's versions, newest first, below a number.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM versions
WHERE project_id = $1 AND node_id = $2 AND number < $3
ORDER BY number DESC
LIMIT $4

-- name: commit_page
SELECT seq, id, principal_id, operator_type, message, committed_at
FROM commits
WHERE project_id = $1 AND seq > $2
ORDER BY seq
LIMIT $3

-- name: wait_for_writers
-- Until whoever holds the project's head is done; also of a deleted project.
SELECT FROM projects WHERE id = $1 FOR KEY SHARE

-- name: commit_by_id
-- Whether a commit whose outcome is unknown happened.
SELECT project_id, seq FROM commits WHERE id = $1

-- name: sizes
SELECT count(*) FILTER (WHERE replaced_seq IS NULL AND kind IN ('file', 'symlink')) AS files,
       coalesce(sum(size) FILTER (WHERE replaced_seq IS NULL AND kind IN ('file', 'symlink')), 0) AS bytes,
       count(*) AS versions
FROM versions WHERE project_id = $1

-- name: stored_bytes
SELECT coalesce(sum(b.size), 0) FROM blobs b
WHERE b.hash IN (SELECT content_hash FROM versions WHERE project_id = $1
                 UNION SELECT content_hash FROM side_versions WHERE project_id = $1)

-- name: lock_head
-- The project's head, held to the end of the transaction: only one writer moves it. Who had to wait for it may not see
-- the id of a commit that came meanwhile.
SELECT p.head, p.epoch, p.policy_version,
       (SELECT c.id FROM commits c WHERE c.project_id = p.id AND c.seq = p.head) AS commit_id
FROM projects p
WHERE p.id = $1 AND p.deleted_at IS NULL
FOR UPDATE OF p

-- name: read_head
SELECT p.head, p.epoch, p.policy_version,
       (SELECT c.id FROM commits c WHERE c.project_id = p.id AND c.seq = p.head) AS commit_id
FROM projects p
WHERE p.id = $1 AND p.deleted_at IS NULL

-- name: land
-- All that a batch of commits writes, in one statement: a transaction of its own, unless it stands in one. Nothing at all
-- if the head ($2 to $5) or the audit chain ($6, $7) is elsewhere than it was taken to be, or if a content ($29) cannot be
-- referred to, because GC is removing it or it was purged. What else must not be, constraints refuse.
WITH ground AS (
    SELECT p.id FROM projects p JOIN audit_heads a ON a.chain = p.id
    WHERE p.id = $1 AND p.head = $2 AND p.epoch = $3 AND p.policy_version = $4 AND p.deleted_at IS NULL
      AND a.number = $6 AND a.mac = $7
      AND ($5::uuid IS NULL OR EXISTS (SELECT FROM commits WHERE project_id = $1 AND seq = $2 AND id = $5))
      AND NOT EXISTS (SELECT FROM blobs WHERE hash = ANY ($29::bytea[]) AND NOT (live AND purged_at IS NULL))
    FOR UPDATE OF p, a
), extended AS (
    UPDATE audit_heads a SET number = $8, mac = $9, seal = $10 FROM ground WHERE a.chain = ground.id
), audited AS (
    INSERT INTO audit (chain, number, at, operator_type, principal_id, token_id, action, path, node_id, base_seq, seq,
                       old_hash, new_hash, strategy, summary, origin, trace_id, details, mac)
    SELECT ground.id, linked.*
    FROM ground, unnest($11::bigint[], $12::timestamptz[], $13::text[], $14::uuid[], $15::uuid[], $16::text[],
                        $17::text[], $18::uuid[], $19::bigint[], $20::bigint[], $21::bytea[], $22::bytea[],
                        $23::text[], $24::text[], $25::text[], $26::text[], $27::text[], $28::bytea[]) AS linked
), given AS (  -- in order of hash, so that two transactions cannot deadlock
    SELECT blob.* FROM ground, unnest($29::bytea[], $30::bytea[]) AS blob (hash, content) ORDER BY hash
), new_blobs AS (
    INSERT INTO blobs (hash, size) SELECT hash, octet_length(content) FROM given ON CONFLICT DO NOTHING RETURNING hash
), stored AS (
    INSERT INTO blob_contents (hash, content) SELECT hash, content FROM given JOIN new_blobs USING (hash)
    ON CONFLICT (hash) DO NOTHING
), moved AS (
    UPDATE projects p SET head = $31 FROM ground WHERE p.id = ground.id AND p.head <> $31
), committed AS (
    INSERT INTO commits (project_id, seq, id, principal_id, operator_type, message, run)
    SELECT ground.id, new.*
    FROM ground, unnest($32::bigint[], $33::uuid[], $34::uuid[], $35::text[], $36::text[], $37::text[]) AS new
), made AS (
    INSERT INTO nodes (project_id, id, created_seq)
    SELECT ground.id, new.* FROM ground, unnest($38::uuid[], $39::bigint[]) AS new
), ended AS (
    UPDATE versions v SET replaced_seq = r.seq
    FROM ground
    CROSS JOIN unnest($40::uuid[], $41::integer[], $42::bigint[]) AS r (node_id, number, seq)
    CROSS JOIN LATERAL (
        SELECT ctid FROM versions
        WHERE project_id = $1 AND node_id = r.node_id AND number = r.number AND replaced_seq IS NULL
        LIMIT 1  -- looked up one by one: before there are statistics, all heads of the project would be read instead
    ) head
    WHERE v.ctid = head.ctid
    RETURNING true
), versioned AS (
    INSERT INTO versions (project_id, node_id, number, seq, replaced_seq, path, kind, content_hash, size, executable,
                          mime, base_number, merged_number, sent_hash)
    SELECT ground.id, new.*
    FROM ground, unnest($43::uuid[], $44::integer[], $45::bigint[], $46::bigint[], $47::text[], $48::text[],
                        $49::bytea[], $50::bigint[], $51::boolean[], $52::text[], $53::integer[], $54::integer[],
                        $55::bytea[]) AS new
    WHERE (SELECT count(*) FROM ended) >= 0  -- so that versions end before others take their places
), set_aside AS (
    INSERT INTO side_versions (project_id, id, seq, node_id, path, reason, kind, content_hash, size, executable, mime,
                               base_number)
    SELECT ground.id, side.*
    FROM ground, unnest($56::uuid[], $57::bigint[], $58::uuid[], $59::text[], $60::text[], $61::text[], $62::bytea[],
                        $63::bigint[], $64::boolean[], $65::text[], $66::integer[]) AS side
), in_review AS (
    INSERT INTO review_items (project_id, id, seq, checked_seq, node_id, path, author_id, reason, base_path, base_seq,
                              base_number, ours_number, side_version_id, conflicts)
    SELECT ground.id, item.*
    FROM ground, unnest($67::uuid[], $68::bigint[], $68::bigint[], $69::uuid[], $70::text[], $71::uuid[], $72::text[],
                        $73::text[], $74::bigint[], $75::integer[], $76::integer[], $77::uuid[], $78::text[]) AS item
), answered AS (
    INSERT INTO answered_requests (project_id, principal_id, key, request_hash, answer)
    SELECT ground.id, kept.*
    FROM ground, unnest($79::uuid[], $80::text[], $81::bytea[], $82::text[]) AS kept
)
SELECT EXISTS (SELECT FROM ground)

-- name: insert_blob_content
-- Create-only; something of another size under that name is damage, and is replaced.
INSERT INTO blob_contents (hash, content) VALUES ($1, $2)
ON CONFLICT (hash) DO UPDATE SET content = excluded.content
    WHERE octet_length(blob_contents.content) <> octet_length(excluded.content)

-- name: blob_content
SELECT content FROM blob_contents WHERE hash = $1

-- name: blob_contents_of
SELECT hash, content FROM blob_contents WHERE hash = ANY ($1::bytea[])

-- name: blob_content_sizes
SELECT hash, octet_length(content) AS size FROM blob_contents WHERE hash = ANY ($1::bytea[])

-- name: blob_content_page
SELECT hash, octet_length(content) AS size, stored_at FROM blob_contents WHERE hash > $1 ORDER BY hash LIMIT $2

-- name: delete_blob_content
DELETE FROM blob_contents WHERE hash = $1 RETURNING true

-- name: put_inline
-- A small blob's row and bytes in one statement, the row first: while it is ours, GC cannot mark it. Nothing comes
-- back, and nothing is stored, while GC removes that blob, or if somebody else has just put it.
-- DO NOTHING names no index, here and below: blobs has two unique ones, and for the one that ON CONFLICT does not name
-- two inserts at the same moment are an error.
WITH made AS (
    INSERT INTO blobs (hash, size) VALUES ($1, octet_length($2::bytea)) ON CONFLICT DO NOTHING RETURNING true AS live
), renewed AS (
    UPDATE blobs SET renewed_at = clock_timestamp() WHERE hash = $1 AND live AND purged_at IS NULL RETURNING live
), held AS (
    SELECT live FROM made UNION ALL SELECT live FROM renewed
), stored AS (
    INSERT INTO blob_contents (hash, content) SELECT $1, $2 FROM held ON CONFLICT (hash) DO NOTHING
)
SELECT live FROM held

-- name: insert_new_blobs
-- Rows and bytes of small blobs that are not there yet; in order of hash, so that two transactions cannot deadlock.
WITH given AS (
    SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS blob (hash, content) ORDER BY hash
), made AS (
    INSERT INTO blobs (hash, size) SELECT hash, octet_length(content) FROM given
    ON CONFLICT DO NOTHING
    RETURNING hash
), stored AS (
    INSERT INTO blob_contents (hash, content) SELECT hash, content FROM given JOIN made USING (hash)
    ON CONFLICT (hash) DO NOTHING
)
SELECT hash FROM made

-- name: fresh_blobs
-- Those of these blobs that were put lately; locked against GC until the transaction ends, in order of hash, so that two
-- transactions cannot deadlock.
SELECT hash FROM blobs
WHERE hash = ANY ($1::bytea[]) AND live AND purged_at IS NULL
  AND renewed_at > clock_timestamp() - interval '1 hour'
ORDER BY hash
FOR KEY SHARE

-- name: renew_blobs
-- Say that these were put again; in order of hash, so that two transactions cannot deadlock. Those that GC is removing
-- do not come back.
UPDATE blobs SET renewed_at = clock_timestamp()
WHERE hash IN (SELECT hash FROM blobs WHERE hash = ANY ($1::bytea[]) AND live AND purged_at IS NULL
               ORDER BY hash FOR NO KEY UPDATE)
RETURNING hash

-- name: renew_blob
-- Say that somebody has just put it again. No row comes back if it is not stored, or being removed.
UPDATE blobs SET renewed_at = clock_timestamp() WHERE hash = $1 AND live RETURNING true

-- name: record_blob
-- The bytes are stored: from now on it may be referred to. Only under the blob's lock, so that nobody else inserts it.
INSERT INTO blobs (hash, size) VALUES ($1, $2)
ON CONFLICT (hash) DO UPDATE SET live = true, size = excluded.size, renewed_at = clock_timestamp()

-- name: blob_row
SELECT size, live FROM blobs WHERE hash = $1

-- name: is_purged
-- Whether it is a tombstone, or a content that was purged somewhere: what a server remembers may be that old.
SELECT EXISTS (SELECT FROM blobs WHERE hash = $1 AND purged_at IS NOT NULL)
    OR EXISTS (SELECT FROM purged_contents WHERE purged_hash = $1)

-- name: insert_tombstones
-- A blob without bytes, named $2, for each of the contents $1.
INSERT INTO blobs (hash, size, purged_at)
SELECT t.tombstone, b.size, clock_timestamp()
FROM unnest($1::bytea[], $2::bytea[]) AS t (hash, tombstone) JOIN blobs b ON b.hash = t.hash

-- name: bury_contents
-- In the projects $3, put the tombstones $2 in the place of the contents $1, and remember which stands for what.
WITH t AS (
    SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS t (hash, tombstone)
), changed AS (
    UPDATE versions v SET content_hash = coalesce(c.tombstone, v.content_hash),
                          sent_hash = coalesce(s.tombstone, v.sent_hash)
    FROM versions o LEFT JOIN t c ON c.hash = o.content_hash LEFT JOIN t s ON s.hash = o.sent_hash
    WHERE o.project_id = ANY ($3::uuid[]) AND (o.content_hash = ANY ($1::bytea[]) OR o.sent_hash = ANY ($1::bytea[]))
      AND v.project_id = o.project_id AND v.node_id = o.node_id AND v.number = o.number
    RETURNING v.project_id, c.hash AS content, c.tombstone, s.hash AS sent, s.tombstone AS sent_tombstone
), set_aside AS (
    UPDATE side_versions s SET content_hash = t.tombstone FROM t
    WHERE s.project_id = ANY ($3::uuid[]) AND s.content_hash = t.hash
    RETURNING s.project_id, t.hash, t.tombstone
)
INSERT INTO purged_contents (project_id, purged_hash, tombstone)
SELECT project_id, content, tombstone FROM changed WHERE content IS NOT NULL
UNION SELECT project_id, sent, sent_tombstone FROM changed WHERE sent IS NOT NULL
UNION SELECT project_id, hash, tombstone FROM set_aside

-- name: release_blobs
-- From here on nobody can refer to them, and the bytes in the database are gone: the foreign keys refuse this while
-- somebody refers to one.
WITH released AS (
    UPDATE blobs SET live = false WHERE hash = ANY ($1::bytea[])
)
DELETE FROM blob_contents WHERE hash = ANY ($1::bytea[])

-- name: blob_page
SELECT hash, size, live, purged_at IS NOT NULL AS purged FROM blobs WHERE hash > $1 ORDER BY hash LIMIT $2

-- name: count_blobs
SELECT count(*) FROM blobs

-- name: lock_blob
SELECT pg_advisory_lock($1)

-- name: keep_blobs
-- Held shared by backups, alone by each removal of bytes; of the session.
SELECT pg_advisory_lock_shared(1667391079, 1)

-- name: blobs_are_kept
-- Whether this session holds it.
SELECT EXISTS (SELECT FROM pg_locks
               WHERE locktype = 'advisory' AND classid = 1667391079 AND objid = 1 AND objsubid = 2
                 AND pid = pg_backend_pid() AND granted)

-- name: may_remove_blobs
SELECT pg_try_advisory_lock(1667391079, 1)

-- part: is_garbage
-- Nothing refers to the blob, and it was put before $2; or an earlier GC did not finish with it.
(NOT b.live OR (b.renewed_at < $2
       AND NOT EXISTS (SELECT FROM versions v WHERE v.content_hash = b.hash)
       AND NOT EXISTS (SELECT FROM versions v WHERE v.sent_hash = b.hash)
       AND NOT EXISTS (SELECT FROM side_versions s WHERE s.content_hash = b.hash)
       AND NOT EXISTS (SELECT FROM uploads u WHERE u.content_hash = b.hash)
       AND NOT EXISTS (SELECT FROM stream_events e WHERE e.content_hash = b.hash)
       AND NOT EXISTS (SELECT FROM session_snapshot_files f WHERE f.content_hash = b.hash)
       AND NOT EXISTS (SELECT FROM run_attachments a WHERE a.content_hash = b.hash)))

-- name: garbage_page
SELECT b.hash, b.size FROM blobs b
WHERE b.hash > $1
  AND
  -- use: is_garbage
ORDER BY b.hash
LIMIT $3

-- name: mark_blob
-- From here on nobody can refer to it: the foreign keys refuse this for a blob somebody refers to already.
UPDATE blobs b SET live = false
WHERE b.hash = $1 AND
  -- use: is_garbage
RETURNING true

-- name: mark_stray
-- An object without a row (its put died before the row): a row that is not live, so that a put of it waits for us.
INSERT INTO blobs (hash, size, live) VALUES ($1, $2, false) ON CONFLICT DO NOTHING RETURNING true

-- name: forget_blob
DELETE FROM blobs WHERE hash = $1 AND NOT live

-- name: check_projects
-- C2: a project's commits are 1..head, without a gap.
SELECT p.id, p.name, p.head, count(c.seq) AS commits, coalesce(max(c.seq), 0) AS last
FROM projects p LEFT JOIN commits c ON c.project_id = p.id
GROUP BY p.id
HAVING count(c.seq) <> p.head OR coalesce(max(c.seq), 0) <> p.head

-- name: check_chains
-- C3: a node's versions are 1..n, each holds until the next one starts, and the last is the node's head.
SELECT project_id, node_id, number, path FROM (
    SELECT project_id, node_id, number, path, seq, replaced_seq,
           row_number() OVER chain AS expected,
           lead(seq) OVER chain AS next_seq
    FROM versions
    WINDOW chain AS (PARTITION BY project_id, node_id ORDER BY number)
) v
WHERE number <> expected OR replaced_seq IS DISTINCT FROM next_seq
LIMIT 100

-- name: check_paths
-- C3: at no time were two nodes at one path.
SELECT project_id, path, seq FROM (
    SELECT project_id, path, seq,
           lag(coalesce(replaced_seq, 9223372036854775807)) OVER (PARTITION BY project_id, path ORDER BY seq) AS earlier_end
    FROM versions WHERE kind <> 'deleted'
) v
WHERE earlier_end > seq
LIMIT 100

-- name: check_folders
-- At the head nothing lies below a file or a link.
SELECT f.project_id, f.path, below.path AS below
FROM versions f
JOIN LATERAL (
    SELECT v.path FROM versions v
    WHERE v.project_id = f.project_id AND v.path > f.path || '/' AND v.path < f.path || '0'
      AND v.replaced_seq IS NULL AND v.kind <> 'deleted'
    LIMIT 1
) below ON true
WHERE f.replaced_seq IS NULL AND f.kind IN ('file', 'symlink')
LIMIT 100

-- name: check_nodes
-- C3: every node has a first version, or a side version, of the commit that made it.
SELECT n.project_id, n.id, n.created_seq
FROM nodes n LEFT JOIN versions v ON v.project_id = n.project_id AND v.node_id = n.id AND v.number = 1
WHERE v.seq IS DISTINCT FROM n.created_seq
  AND NOT EXISTS (SELECT FROM side_versions s
                  WHERE s.project_id = n.project_id AND s.node_id = n.id AND s.seq = n.created_seq)
LIMIT 100

-- name: check_side_versions
-- C3: what was set aside is still there.
SELECT s.project_id, s.path, s.id
FROM side_versions s LEFT JOIN blobs b ON b.hash = s.content_hash AND b.live
WHERE s.content_hash IS NOT NULL AND b.size IS DISTINCT FROM s.size
LIMIT 100

-- name: check_event_bodies
-- What an event has a preview of is still there.
SELECT e.scope_kind, e.scope_id, e.number
FROM stream_events e LEFT JOIN blobs b ON b.hash = e.content_hash AND b.live
WHERE e.content_hash IS NOT NULL AND b.size IS DISTINCT FROM e.size
LIMIT 100

-- name: check_event_numbers
-- No event lies past the end of its stream: the next one would take its number.
SELECT e.scope_kind, e.scope_id, max(e.number) AS last, h.number AS head
FROM stream_events e LEFT JOIN stream_heads h ON h.scope_kind = e.scope_kind AND h.scope_id = e.scope_id
GROUP BY e.scope_kind, e.scope_id, h.number
HAVING h.number IS NULL OR max(e.number) > h.number
LIMIT 100

-- name: check_versions_have_commits
-- Every version belongs to a commit and a node of its project, and its size is its blob's.
SELECT v.project_id, v.path, v.number,
       c.seq IS NULL AS no_commit, n.id IS NULL AS no_node,
       v.content_hash IS NOT NULL AND b.hash IS NULL AS no_blob,
       b.size IS DISTINCT FROM v.size AND b.hash IS NOT NULL AS other_size
FROM versions v
LEFT JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
LEFT JOIN nodes n ON n.project_id = v.project_id AND n.id = v.node_id
LEFT JOIN blobs b ON b.hash = v.content_hash AND b.live
WHERE c.seq IS NULL OR n.id IS NULL OR (v.content_hash IS NOT NULL AND b.size IS DISTINCT FROM v.size)
LIMIT 100

-- name: check_commits_have_audit
-- C8: every commit is in its project's audit chain.
SELECT c.project_id, c.seq FROM commits c
WHERE NOT EXISTS (SELECT FROM audit a WHERE a.chain = c.project_id AND a.seq = c.seq)
LIMIT 100

-- name: check_projects_and_chains
-- C8: a project and its audit chain are made together, and neither is ever removed.
SELECT coalesce(p.id, h.chain) AS project_id, p.id IS NULL AS no_project
FROM projects p FULL JOIN (SELECT chain FROM audit_heads WHERE chain <> '00000000-0000-0000-0000-000000000000') h
     ON h.chain = p.id
WHERE p.id IS NULL OR h.chain IS NULL
LIMIT 100

-- name: check_tokens_have_audit
-- C8: every token was made in the system's audit chain; else that chain was cut, or the token came another way.
SELECT t.id, t.name FROM tokens t
WHERE NOT EXISTS (SELECT FROM audit a
                  WHERE a.chain = '00000000-0000-0000-0000-000000000000' AND a.action = 'token.create'
                    AND substring(a.details FROM '"token_id":"([0-9a-f-]{36})"') = t.id::text)
LIMIT 100

-- name: write_probe
-- Write something, durably.
INSERT INTO write_probe (written_at) VALUES (clock_timestamp())
ON CONFLICT (only_row) DO UPDATE SET written_at = excluded.written_at
