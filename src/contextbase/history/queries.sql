-- name: seq_at_time
-- The last commit at or before a time.
SELECT seq FROM commits WHERE project_id = $1 AND committed_at <= $2 ORDER BY committed_at DESC, seq DESC LIMIT 1

-- name: seq_of_tag
SELECT seq FROM tags WHERE project_id = $1 AND name = $2

-- name: insert_tag
-- Nothing comes back if the name is taken.
INSERT INTO tags (project_id, name, seq, message, created_by) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
RETURNING name, seq, message, created_at

-- name: delete_tag
DELETE FROM tags WHERE project_id = $1 AND name = $2 RETURNING seq

-- name: tag_page
-- Tags by name, after a name.
SELECT t.name, t.seq, t.message, t.created_at, p.kind AS principal_kind, p.name AS principal_name
FROM tags t JOIN principals p ON p.id = t.created_by
WHERE t.project_id = $1 AND t.name COLLATE "C" > $2
ORDER BY t.name COLLATE "C"
LIMIT $3

-- name: differing_nodes
-- The nodes that differ between snapshots $2 < $3, each with both states and where it is now. Costs what changed
-- between them, whatever the tree's size. A node is listed at each place that it has in either, so that whoever may
-- see one of them only finds it there: in path order, after $4, at $5 or in the range ($6, $7).
-- (Each state is looked up by itself, so that a plan made before the tables were analyzed is no worse.)
WITH touched AS (
    SELECT node_id, min(number) - 1 AS before, max(number) AS after
    FROM versions
    WHERE project_id = $1 AND seq > $2 AND seq <= $3
    GROUP BY node_id
), pairs AS (
    SELECT t.node_id, b.state AS older, a.state AS newer, h.path AS path_now,
           CASE WHEN (b.state).kind <> 'deleted' THEN (b.state).path END AS older_path,
           CASE WHEN (a.state).kind <> 'deleted' THEN (a.state).path END AS newer_path
    FROM touched t
    CROSS JOIN LATERAL (
        SELECT v AS state FROM versions v WHERE v.project_id = $1 AND v.node_id = t.node_id AND v.number = t.after LIMIT 1
    ) a
    CROSS JOIN LATERAL (
        SELECT path FROM versions v WHERE v.project_id = $1 AND v.node_id = t.node_id AND v.replaced_seq IS NULL LIMIT 1
    ) h
    LEFT JOIN LATERAL (
        SELECT v AS state FROM versions v WHERE v.project_id = $1 AND v.node_id = t.node_id AND v.number = t.before LIMIT 1
    ) b ON true
    WHERE CASE WHEN (b.state).kind <> 'deleted' AND (a.state).kind <> 'deleted'
               THEN ((a.state).path, (a.state).kind, (a.state).content_hash, (a.state).executable, (a.state).mime)
                    IS DISTINCT FROM ((b.state).path, (b.state).kind, (b.state).content_hash, (b.state).executable, (b.state).mime)
               ELSE (b.state).kind <> 'deleted' OR (a.state).kind <> 'deleted' END
), places AS (
    SELECT older_path AS path, pairs.* FROM pairs WHERE older_path IS NOT NULL
    UNION ALL
    SELECT newer_path, pairs.* FROM pairs WHERE newer_path IS NOT NULL AND newer_path IS DISTINCT FROM older_path
)
SELECT path, node_id, older, newer, path_now
FROM places
WHERE path > $4 AND (path = $5 OR (path >= $6 AND path < $7))
ORDER BY path, node_id
LIMIT $8

-- name: commits_of_principals
-- The commits that these principals made in ($3, $4], of one run or (NULL) of any.
SELECT seq FROM commits
WHERE project_id = $1 AND principal_id = ANY ($2::uuid[]) AND seq > $3 AND seq <= $4 AND ($5::text IS NULL OR run = $5)

-- name: commits_of_run
SELECT seq FROM commits WHERE project_id = $1 AND run = $2 AND seq > $3 AND seq <= $4

-- name: stretches
-- What these commits made of each node: every stretch of versions that follow each other, with the state before it and
-- the one it left; the newest first, before ($3, $4).
WITH made AS (
    SELECT v.node_id, v.number, v.number - row_number() OVER (PARTITION BY v.node_id ORDER BY v.number) AS stretch
    FROM unnest($2::bigint[]) AS c (seq)
    JOIN versions v ON v.project_id = $1 AND v.seq = c.seq
), stretches AS (
    SELECT node_id, min(number) AS first, max(number) AS last FROM made GROUP BY node_id, stretch
)
SELECT s.node_id, b.state AS older, a.state AS newer, h.path AS path_now
FROM stretches s
CROSS JOIN LATERAL (
    SELECT v AS state FROM versions v WHERE v.project_id = $1 AND v.node_id = s.node_id AND v.number = s.last LIMIT 1
) a
CROSS JOIN LATERAL (
    SELECT path FROM versions v WHERE v.project_id = $1 AND v.node_id = s.node_id AND v.replaced_seq IS NULL LIMIT 1
) h
LEFT JOIN LATERAL (
    SELECT v AS state FROM versions v WHERE v.project_id = $1 AND v.node_id = s.node_id AND v.number = s.first - 1 LIMIT 1
) b ON true
WHERE ((a.state).seq, (a.state).node_id) < ($3::bigint, $4::uuid)
ORDER BY (a.state).seq DESC, (a.state).node_id DESC
LIMIT $5

-- name: numbered_versions
-- A node's versions with these numbers (NULL: the last one), with where it is now.
SELECT v AS state, h.path AS path_now
FROM versions v
JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
WHERE v.project_id = $1 AND v.node_id = $2 AND (v.number = ANY ($3::integer[]) OR ($4 AND v.replaced_seq IS NULL))

-- name: node_at_path
-- The node at a path in a snapshot.
SELECT node_id, number FROM versions
WHERE project_id = $1 AND path = $2 AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3) AND kind <> 'deleted'

-- name: lineage
-- A node's versions up to a number, oldest first, with where it is now.
SELECT v.number, v.seq, v.path, v.kind, v.content_hash, v.size, v.base_number, h.path AS path_now,
       b.purged_at IS NOT NULL AS purged
FROM versions v
JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
LEFT JOIN blobs b ON b.hash = v.content_hash
WHERE v.project_id = $1 AND v.node_id = $2 AND v.number <= $3
ORDER BY v.number

-- name: authors
-- Who made these commits.
SELECT c.seq, c.operator_type, c.message, c.committed_at, p.kind AS principal_kind, p.name AS principal_name
FROM commits c JOIN principals p ON p.id = c.principal_id
WHERE c.project_id = $1 AND c.seq = ANY ($2::bigint[])

-- name: archived_page
-- Snapshot $5's entries at $2 or in the range ($3, $4), after $6, with when each was written and where its node is now.
-- What was purged has nothing to take out.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable, c.committed_at, h.path AS path_now
FROM versions v
CROSS JOIN LATERAL (
    SELECT path FROM versions o WHERE o.project_id = $1 AND o.node_id = v.node_id AND o.replaced_seq IS NULL LIMIT 1
) h
CROSS JOIN LATERAL (SELECT committed_at FROM commits o WHERE o.project_id = $1 AND o.seq = v.seq LIMIT 1) c
LEFT JOIN LATERAL (SELECT purged_at FROM blobs o WHERE o.hash = v.content_hash LIMIT 1) b ON true
WHERE v.project_id = $1 AND (v.path = $2 OR (v.path >= $3 AND v.path < $4)) AND v.path > $6
  AND v.seq <= $5 AND (v.replaced_seq IS NULL OR v.replaced_seq > $5) AND v.kind <> 'deleted' AND b.purged_at IS NULL
ORDER BY v.path
LIMIT $7

-- name: node_heads
-- These nodes as they are now, deleted ones too.
SELECT node_id, number, seq, path, kind, content_hash, size, executable, mime, base_number, merged_number, sent_hash
FROM versions
WHERE project_id = $1 AND node_id = ANY ($2::uuid[]) AND replaced_seq IS NULL

-- name: contents_of_path
-- Everything that ever stood at a path, was sent for it, or was set aside there; of a folder, everything below it. What
-- was purged before is named as it was, not by its tombstone: to bury that would let the content come back.
SELECT DISTINCT coalesce(p.purged_hash, contents.content_hash) AS content_hash FROM (
    SELECT v.content_hash FROM versions v
    WHERE v.project_id = $1 AND (v.path = $2 OR (v.path > $2 || '/' AND v.path < $2 || '0'))
    UNION ALL
    SELECT v.sent_hash FROM versions v
    WHERE v.project_id = $1 AND (v.path = $2 OR (v.path > $2 || '/' AND v.path < $2 || '0'))
    UNION ALL
    SELECT s.content_hash FROM side_versions s
    WHERE s.project_id = $1 AND (s.path = $2 OR (s.path > $2 || '/' AND s.path < $2 || '0'))
) contents
LEFT JOIN purged_contents p ON p.project_id = $1 AND p.tombstone = contents.content_hash
WHERE contents.content_hash IS NOT NULL

-- name: heads_with
-- Where these contents stand now, in whatever project: but for deleted ones, which nobody reads or writes any more.
SELECT v.project_id, p.head, v.path
FROM versions v JOIN projects p ON p.id = v.project_id
WHERE v.content_hash = ANY ($1::bytea[]) AND v.replaced_seq IS NULL AND p.deleted_at IS NULL
ORDER BY v.project_id, v.path

-- name: is_left_of_a_purge
-- Whether the content was purged from any project's history before, or only its bytes are still to be removed.
SELECT EXISTS (SELECT FROM purged_contents WHERE purged_hash = $1)
    OR EXISTS (SELECT FROM blobs WHERE hash = $1 AND NOT live)

-- name: contents_in
-- Which of these contents are in whose history or sessions.
SELECT project_id, content_hash FROM versions WHERE content_hash = ANY ($1::bytea[])
UNION
SELECT project_id, sent_hash FROM versions WHERE sent_hash = ANY ($1::bytea[])
UNION
SELECT project_id, content_hash FROM side_versions WHERE content_hash = ANY ($1::bytea[])
UNION
SELECT project_id, content_hash FROM uploads WHERE content_hash = ANY ($1::bytea[])
UNION
SELECT s.project_id, f.content_hash
FROM session_snapshot_files f JOIN session_snapshots s ON s.id = f.snapshot_id
WHERE f.content_hash = ANY ($1::bytea[])
UNION
SELECT s.project_id, a.content_hash
FROM run_attachments a JOIN agent_runs r ON r.id = a.run_id JOIN agent_sessions s ON s.id = r.session_id
WHERE a.content_hash = ANY ($1::bytea[])

-- name: session_uses
-- How many files of sessions have these contents, each counted once however many snapshots have it; and how many files
-- were sent with messages.
SELECT (SELECT count(DISTINCT (s.session_id, f.path))
        FROM session_snapshot_files f JOIN session_snapshots s ON s.id = f.snapshot_id
        WHERE f.content_hash = ANY ($1::bytea[])) AS files,
       (SELECT count(*) FROM run_attachments WHERE content_hash = ANY ($1::bytea[])) AS attachments

-- name: lock_projects
SELECT id FROM projects WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE

-- name: lock_contents
-- Whoever begins to refer to one of them waits, and whoever has just done so is seen: a snapshot that a session takes
-- could otherwise wait for us while we wait for it.
SELECT hash FROM blobs WHERE hash = ANY ($1::bytea[]) ORDER BY hash FOR UPDATE

-- name: forget_copies
-- What was copied out of contents: conflicts in review items and in stored answers, and who uploaded them; and where
-- sessions have them: a file of a snapshot goes with all of its pieces. The new policy version makes every server forget
-- what it has in memory.
WITH uploaded AS (
    DELETE FROM uploads WHERE content_hash = ANY ($2::bytea[])
), attached AS (
    DELETE FROM run_attachments WHERE content_hash = ANY ($2::bytea[])
), in_snapshots AS (
    DELETE FROM session_snapshot_files f USING session_snapshot_files piece
    WHERE piece.content_hash = ANY ($2::bytea[]) AND f.snapshot_id = piece.snapshot_id AND f.path = piece.path
), reviewed AS (
    UPDATE review_items r SET conflicts = '[]', suggestion = NULL
    FROM side_versions s
    WHERE r.project_id = ANY ($1::uuid[]) AND s.project_id = r.project_id AND s.id = r.side_version_id
      AND (s.content_hash = ANY ($2::bytea[]) OR EXISTS (
          SELECT FROM versions v
          WHERE v.project_id = r.project_id AND v.content_hash = ANY ($2::bytea[])
            AND (v.node_id = r.node_id OR v.path IN (r.path, r.base_path))))
), answered AS (
    DELETE FROM answered_requests WHERE project_id = ANY ($1::uuid[]) AND answer LIKE '%"conflicts": [{%'
)
UPDATE projects SET policy_version = policy_version + 1 WHERE id = ANY ($1::uuid[])

-- name: side_state
SELECT s.path, s.kind, s.content_hash, s.size, s.executable, coalesce(h.path, s.path) AS path_now
FROM side_versions s
LEFT JOIN versions h ON h.project_id = s.project_id AND h.node_id = s.node_id AND h.replaced_seq IS NULL
WHERE s.project_id = $1 AND s.id = $2
