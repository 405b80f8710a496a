-- name: snapshot_entries
-- Snapshot $2 in path order, after a path.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable, c.committed_at, false AS existed
FROM versions v JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
  AND v.path > $3
ORDER BY v.path
LIMIT $4

-- name: snapshot_entries_below
-- As snapshot_entries, of the folder $5 and what is in it.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable, c.committed_at, false AS existed
FROM versions v JOIN commits c ON c.project_id = v.project_id AND c.seq = v.seq
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
  AND (v.path = $5 OR (v.path > $5 || '/' AND v.path < $5 || '0')) AND v.path > $3
ORDER BY v.path
LIMIT $4

-- part: both_states
-- What stands at these places in snapshot $3, and stood there in $2, where the two differ.
SELECT p.path, coalesce(newer.kind, 'deleted') AS kind, newer.content_hash, coalesce(newer.size, 0) AS size,
       coalesce(newer.executable, false) AS executable, c.committed_at, older.kind IS NOT NULL AS existed,
       coalesce(older.kind, 'deleted') AS older_kind, older.content_hash AS older_hash,
       coalesce(older.size, 0) AS older_size, coalesce(older.executable, false) AS older_executable
FROM places p
LEFT JOIN LATERAL (
    SELECT v.node_id, v.kind, v.content_hash, v.size, v.executable, v.seq FROM versions v
    WHERE v.project_id = $1 AND v.path = p.path AND v.seq <= $3 AND (v.replaced_seq IS NULL OR v.replaced_seq > $3)
      AND v.kind <> 'deleted'
    LIMIT 1
) newer ON true
LEFT JOIN LATERAL (
    SELECT v.node_id, v.kind, v.content_hash, v.size, v.executable FROM versions v
    WHERE v.project_id = $1 AND v.path = p.path AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)
      AND v.kind <> 'deleted'
    LIMIT 1
) older ON true
JOIN commits c ON c.project_id = $1 AND c.seq = coalesce(newer.seq, $3)
WHERE (newer.node_id, newer.kind, newer.content_hash, newer.executable)
      IS DISTINCT FROM (older.node_id, older.kind, older.content_hash, older.executable)
ORDER BY p.path
LIMIT $5

-- name: changed_entries
-- The paths at which snapshots $2 < $3 differ, if only by the node that stands there, in path order, after a path: costs
-- what changed between them.
WITH touched AS (
    SELECT DISTINCT node_id FROM versions WHERE project_id = $1 AND seq > $2 AND seq <= $3
), places AS (
    SELECT DISTINCT v.path
    FROM touched t JOIN versions v ON v.project_id = $1 AND v.node_id = t.node_id
    WHERE v.kind <> 'deleted' AND v.path > $4
      AND ((v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2))
           OR (v.seq <= $3 AND (v.replaced_seq IS NULL OR v.replaced_seq > $3)))
)
-- use: both_states

-- name: changed_entries_below
-- As changed_entries, of the folder $6 and what is in it: costs what was ever in it, however much changed elsewhere.
WITH places AS (
    SELECT DISTINCT v.path FROM versions v
    WHERE v.project_id = $1 AND (v.path = $6 OR (v.path > $6 || '/' AND v.path < $6 || '0')) AND v.path > $4
      AND v.kind <> 'deleted' AND ((v.seq > $2 AND v.seq <= $3) OR (v.replaced_seq > $2 AND v.replaced_seq <= $3))
)
-- use: both_states

-- name: count_changes
-- How many nodes of snapshot $3 are newer than snapshot $2; no more than $4 are counted.
SELECT count(*) FROM (
    SELECT FROM versions
    WHERE project_id = $1 AND seq > $2 AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)
    LIMIT $4
) AS counted

-- name: count_changes_below
-- As count_changes, of the folder $5 and what is in it.
SELECT count(*) FROM (
    SELECT FROM versions
    WHERE project_id = $1 AND seq > $2 AND seq <= $3 AND (replaced_seq IS NULL OR replaced_seq > $3)
      AND (path = $5 OR (path > $5 || '/' AND path < $5 || '0'))
    LIMIT $4
) AS counted

-- name: standing_folders
-- Those of the paths that are folders in snapshot $2: as nodes, or because something lies below.
SELECT folder.path
FROM unnest($3::text[]) AS folder (path)
WHERE EXISTS (
    SELECT FROM versions v
    WHERE v.project_id = $1 AND v.path = folder.path AND v.kind = 'directory'
      AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)
) OR EXISTS (
    SELECT FROM versions v
    WHERE v.project_id = $1 AND v.path > folder.path || '/' AND v.path < folder.path || '0' AND v.kind <> 'deleted'
      AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)
)

-- name: nodes_at
-- What stands at these paths in snapshot $2.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable
FROM unnest($3::text[]) AS asked (path)
JOIN versions v ON v.project_id = $1 AND v.path = asked.path
WHERE v.kind <> 'deleted' AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)

-- name: nodes_at_each
-- What stands at each of these paths in a snapshot of its own.
SELECT asked.path, v.node_id, v.kind, v.content_hash, v.size, v.executable
FROM unnest($2::text[], $3::bigint[]) AS asked (path, seq)
CROSS JOIN LATERAL (
    SELECT * FROM versions
    WHERE project_id = $1 AND path = asked.path AND seq <= asked.seq AND kind <> 'deleted'
    ORDER BY seq DESC LIMIT 1
) v
WHERE v.replaced_seq IS NULL OR v.replaced_seq > asked.seq

-- name: nodes_within
-- What stands at these paths, and below them, in snapshot $2.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable
FROM unnest($3::text[]) AS asked (path)
JOIN versions v ON v.project_id = $1
    AND (v.path = asked.path OR (v.path > asked.path || '/' AND v.path < asked.path || '0'))
WHERE v.kind <> 'deleted' AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)

-- name: version_states
-- These versions: what a merge made of what was sent.
SELECT v.node_id, v.number, v.path, v.kind, v.content_hash, v.size, v.executable
FROM unnest($2::uuid[], $3::integer[]) AS asked (node_id, number)
JOIN versions v ON v.project_id = $1 AND v.node_id = asked.node_id AND v.number = asked.number

-- name: paths_of_snapshot
SELECT v.path FROM versions v
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'

-- name: places_of_snapshot
-- Every node of a snapshot: where it stood then, and where it is now, or was last.
SELECT v.path, h.path AS path_now
FROM versions v JOIN versions h ON h.project_id = v.project_id AND h.node_id = v.node_id AND h.replaced_seq IS NULL
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'

-- name: sharing_of_project
-- Which new files its workspaces commit.
SELECT reads_gitignore, allowed_secrets FROM projects WHERE id = $1

-- name: lock_ground
-- What insert_workspace needs, held to the end of the transaction: the project, then the end of its audit chain, as
-- whoever commits or makes a workspace in one statement locks them. Nothing comes back when the agent has an open workspace
-- in the project, or ($3) the project has moved on meanwhile.
SELECT true
FROM projects p JOIN audit_heads a ON a.chain = p.id
WHERE p.id = $1 AND (NOT $3 OR (p.head = $4 AND p.epoch = $5 AND p.policy_version = $6 AND p.deleted_at IS NULL))
  AND NOT EXISTS (SELECT FROM workspaces w WHERE w.project_id = $1 AND w.principal_id = $2 AND w.state = 'open')
FOR KEY SHARE OF p FOR UPDATE OF a

-- name: insert_workspace
-- Nothing comes back when another call made the agent one before the ground was locked.
INSERT INTO workspaces (id, project_id, principal_id, node, provider, path, epoch, base_seq, policy_version, scope,
                        folder, has_metadata)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
-- Who ends one has locked it and waits for the audit chain: nobody holds the chain and waits for that.
WHERE NOT EXISTS (SELECT FROM workspaces WHERE project_id = $2 AND principal_id = $3 AND state = 'open')
ON CONFLICT DO NOTHING
RETURNING created_at

-- part: with_audit_row
-- What `made` tells of, as a link of its project's audit chain; $1 to $24 are the extension of the chain.
, extended AS (
    UPDATE audit_heads a SET number = $4, mac = $5, seal = $6 FROM made WHERE a.chain = made.project_id
), audited AS (
    INSERT INTO audit (chain, number, at, operator_type, principal_id, token_id, action, path, node_id, base_seq, seq,
                       old_hash, new_hash, strategy, summary, origin, trace_id, details, mac)
    SELECT made.project_id, linked.*
    FROM made, unnest($7::bigint[], $8::timestamptz[], $9::text[], $10::uuid[], $11::uuid[], $12::text[], $13::text[],
                      $14::uuid[], $15::bigint[], $16::bigint[], $17::bytea[], $18::bytea[], $19::text[], $20::text[],
                      $21::text[], $22::text[], $23::text[], $24::bytea[]) AS linked
)

-- name: insert_audited_workspace
-- As insert_workspace, with its audit row ($1 to $24), in one statement: a transaction of its own. Nothing comes back, too,
-- if the project's audit chain does not end at $2 with the mac $3.
WITH ground AS (
    SELECT p.id FROM projects p JOIN audit_heads a ON a.chain = p.id
    WHERE p.id = $1 AND (NOT $36 OR (p.head = $31 AND p.epoch = $30 AND p.policy_version = $32 AND p.deleted_at IS NULL))
      AND a.number = $2 AND a.mac = $3
      -- Who ends one has locked it and waits for the audit chain: nobody holds the chain and waits for that.
      AND NOT EXISTS (SELECT FROM workspaces w WHERE w.project_id = $1 AND w.principal_id = $26 AND w.state = 'open')
    FOR KEY SHARE OF p FOR UPDATE OF a
), made AS (
    INSERT INTO workspaces (id, project_id, principal_id, node, provider, path, epoch, base_seq, policy_version, scope,
                            folder, has_metadata)
    SELECT $25, ground.id, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35 FROM ground
    ON CONFLICT DO NOTHING
    RETURNING project_id, created_at
)
-- use: with_audit_row
SELECT created_at FROM made

-- part: workspaces_of_principals
SELECT w.*, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner
FROM workspaces w JOIN principals p ON p.id = w.principal_id

-- name: open_workspace
-- use: workspaces_of_principals
WHERE w.project_id = $1 AND w.principal_id = $2 AND w.state = 'open'

-- name: last_workspace
-- The agent's newest, whether it is open or ended.
-- use: workspaces_of_principals
WHERE w.project_id = $1 AND w.principal_id = $2
ORDER BY w.created_at DESC, w.id DESC
LIMIT 1

-- name: workspace_by_id
-- Open or ended; nothing if its project was deleted.
-- use: workspaces_of_principals
JOIN projects ON projects.id = w.project_id AND projects.deleted_at IS NULL
WHERE w.id = $1

-- name: workspace_page
-- Newest first, before an id; of one project, one agent, one state, within one folder, or (NULL) of any.
-- use: workspaces_of_principals
WHERE ($1::uuid IS NULL OR w.project_id = $1) AND ($2::uuid IS NULL OR w.principal_id = $2)
  AND ($3::text IS NULL OR w.state = $3) AND ($4::uuid IS NULL OR w.id < $4)
  AND ($6::text IS NULL OR w.scope = $6 OR starts_with(w.scope, $6 || '/'))
ORDER BY w.id DESC
LIMIT $5

-- name: projects_of_agent
-- Where the agent has an open workspace; if nowhere, where it had its last one.
SELECT project_id FROM workspaces WHERE principal_id = $1 AND state = 'open'
UNION ALL
(SELECT project_id FROM workspaces
 WHERE principal_id = $1 AND NOT EXISTS (SELECT FROM workspaces WHERE principal_id = $1 AND state = 'open')
 ORDER BY created_at DESC LIMIT 1)
LIMIT 100

-- name: workspaces_with_folder
-- Those of a node whose folders are not known to be gone.
-- use: workspaces_of_principals
WHERE w.node = $1 AND w.removed_at IS NULL
ORDER BY w.id

-- name: workspace_has_folder
SELECT EXISTS (SELECT FROM workspaces WHERE id = $1 AND removed_at IS NULL)

-- name: see_workspace
UPDATE workspaces SET seen_at = clock_timestamp() WHERE id = $1 AND seen_at < clock_timestamp() - interval '1 minute'

-- name: begin_checkpoint
-- What is about to be sent; nothing comes back if the workspace ended or has one under way.
-- The transaction need not wait for the disk: the commit that follows does, and its place in the log is behind.
UPDATE workspaces SET pending = $3, seen_at = clock_timestamp()
FROM set_config('synchronous_commit', 'off', true)
WHERE id = $1 AND state = 'open' AND checkpoint = $2 AND pending IS NULL AND refresh IS NULL
RETURNING true

-- part: bases_that_replace
ON CONFLICT (workspace_id, path) DO UPDATE
SET base_seq = excluded.base_seq, kind = excluded.kind, content_hash = excluded.content_hash, size = excluded.size,
    executable = excluded.executable, origin = excluded.origin

-- name: end_checkpoint
-- Nor need this one: if it is lost, the checkpoint is sent again, and happens once. What was committed has bases of its own
-- from here on. Nothing comes back if another call has ended it.
WITH ended AS (
    UPDATE workspaces SET pending = NULL, checkpoint = checkpoint + 1, seen_at = clock_timestamp()
    FROM set_config('synchronous_commit', 'off', true)
    WHERE id = $1 AND state = 'open' AND checkpoint = $2
    RETURNING id, seen_at
), held AS (
    INSERT INTO workspace_paths (workspace_id, path, base_seq, kind, content_hash, size, executable, origin)
    SELECT ended.id, committed.*
    FROM ended, unnest($3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::bigint[], $8::boolean[], $9::text[])
        AS committed
    -- use: bases_that_replace
)
SELECT seen_at FROM ended

-- name: cancel_checkpoint
-- It was refused as a whole: nothing of it happened.
UPDATE workspaces SET pending = NULL WHERE id = $1 AND checkpoint = $2

-- name: hold_paths
INSERT INTO workspace_paths (workspace_id, path, base_seq, kind, content_hash, size, executable, origin)
SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bigint[], $7::boolean[], $8::text[])
-- use: bases_that_replace

-- name: begin_holding
-- Some paths of a new workspace have bases of their own.
UPDATE workspaces SET refreshed_seq = coalesce(refreshed_seq, base_seq) WHERE id = $1

-- name: held_paths
SELECT path, base_seq, kind, content_hash, size, executable, origin FROM workspace_paths WHERE workspace_id = $1

-- name: begin_refresh
-- What is about to be done in the folder, on the disk before it is; nothing comes back if something is under way.
UPDATE workspaces SET refresh = $2, refreshed_seq = coalesce(refreshed_seq, base_seq)
WHERE id = $1 AND state = 'open' AND refresh IS NULL AND pending IS NULL
RETURNING true

-- name: end_refresh_step
-- It was done, as far as it could be.
UPDATE workspaces SET refresh = NULL WHERE id = $1

-- name: end_refresh
-- The folder shows snapshot $2, under the policy of version $3, but for what was kept.
UPDATE workspaces SET refreshed_seq = $2, policy_version = $3, seen_at = clock_timestamp()
WHERE id = $1 AND state = 'open'

-- name: keep_bases
-- Paths that were kept as they are: from here on it has to be said what they are based on.
INSERT INTO workspace_paths (workspace_id, path, base_seq, kind, content_hash, size, executable, origin)
SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bigint[], $7::boolean[], $8::text[])
ON CONFLICT (workspace_id, path) DO NOTHING

-- name: advance_bases
-- All others have in snapshot $2 what they had in the one they were based on.
UPDATE workspace_paths SET base_seq = $2 WHERE workspace_id = $1 AND base_seq < $2 AND path <> ALL ($3::text[])

-- name: end_workspace
-- Nothing comes back when it had ended already.
UPDATE workspaces SET state = $2, ended_at = clock_timestamp(), pending = NULL, refresh = NULL
WHERE id = $1 AND state = 'open'
RETURNING true

-- name: end_audited_workspace
-- As end_workspace, with its audit row ($1 to $24), in one statement: a transaction of its own. Nothing comes back, too, if
-- the project's audit chain does not end at $2 with the mac $3. The workspace is locked first, as by whoever needs two
-- statements.
WITH open_one AS (
    SELECT id, project_id FROM workspaces WHERE id = $25 AND project_id = $1 AND state = 'open' FOR NO KEY UPDATE
), ground AS (
    SELECT open_one.id FROM open_one JOIN audit_heads a ON a.chain = open_one.project_id
    WHERE a.number = $2 AND a.mac = $3
    FOR UPDATE OF a
), made AS (
    UPDATE workspaces w SET state = $26, ended_at = clock_timestamp(), pending = NULL, refresh = NULL
    FROM ground WHERE w.id = ground.id
    RETURNING w.project_id
)
-- use: with_audit_row
SELECT true FROM made

-- name: workspace_removed
-- If this is lost, the next sweep finds it out again.
WITH forgotten AS (
    DELETE FROM workspace_paths WHERE workspace_id = $1
)
UPDATE workspaces SET removed_at = clock_timestamp()
FROM set_config('synchronous_commit', 'off', true)
WHERE id = $1 AND state <> 'open'

-- name: drop_workspace
-- One whose folder was never finished: nobody was in it.
DELETE FROM workspaces WHERE id = $1 AND state = 'open' AND checkpoint = 0 AND pending IS NULL

-- name: store_uploads
-- What a checkpoint is about to name, kept for its writer meanwhile. In order of hash, as a purge locks contents: so the
-- two cannot deadlock.
INSERT INTO uploads (project_id, principal_id, content_hash, size)
SELECT $1, $2, * FROM unnest($3::bytea[], $4::bigint[]) AS upload (content_hash, size)
ORDER BY content_hash
ON CONFLICT (project_id, principal_id, content_hash) DO UPDATE SET uploaded_at = clock_timestamp()
