-- name: insert_sandbox
-- Nothing comes back when the workspace has one already.
INSERT INTO sandboxes (id, workspace_id, node, driver, network, limits)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING
RETURNING created_at

-- part: sandboxes_of_principals
SELECT s.*, w.project_id, w.principal_id, p.kind AS principal_kind, p.name AS principal_name,
       p.is_owner AS principal_is_owner
FROM sandboxes s JOIN workspaces w ON w.id = s.workspace_id JOIN principals p ON p.id = w.principal_id

-- name: sandbox
-- If its workspace was made with a token for the folder $2, or one in it; NULL: whatever it was for.
-- use: sandboxes_of_principals
WHERE s.id = $1 AND s.removed_at IS NULL AND ($2::text IS NULL OR w.scope = $2 OR starts_with(w.scope, $2 || '/'))

-- name: sandbox_of_workspace
-- use: sandboxes_of_principals
WHERE s.workspace_id = $1 AND s.removed_at IS NULL

-- name: sandbox_page
-- Newest first, before an id; of one project, one agent, within one folder, or (NULL) of any.
-- use: sandboxes_of_principals
WHERE s.removed_at IS NULL AND ($1::uuid IS NULL OR w.project_id = $1) AND ($2::uuid IS NULL OR w.principal_id = $2)
  AND ($3::uuid IS NULL OR s.id < $3) AND ($5::text IS NULL OR w.scope = $5 OR starts_with(w.scope, $5 || '/'))
ORDER BY s.id DESC
LIMIT $4

-- name: sandboxes_of_node
SELECT s.id, s.workspace_id, s.driver, w.state <> 'open' AS has_ended,
       s.seen_at < clock_timestamp() - make_interval(secs => $2) AS is_idle
FROM sandboxes s JOIN workspaces w ON w.id = s.workspace_id
WHERE s.node = $1 AND s.removed_at IS NULL
ORDER BY s.id

-- name: sandboxes_without_leave
-- Of people who were disabled, or have no role in the project any more, and of agents that they made.
SELECT s.id, s.driver
FROM sandboxes s JOIN workspaces w ON w.id = s.workspace_id
JOIN principals p ON p.id = w.principal_id AND NOT p.is_owner
JOIN users u ON u.principal_id = coalesce(p.made_by, p.id)
WHERE s.node = $1 AND s.removed_at IS NULL AND NOT may_work_in(u.principal_id, w.project_id)
ORDER BY s.id

-- name: see_sandbox
UPDATE sandboxes SET seen_at = clock_timestamp() WHERE id = $1 AND seen_at < clock_timestamp() - interval '1 minute'

-- name: sandbox_removed
UPDATE sandboxes SET removed_at = clock_timestamp() WHERE id = $1 AND removed_at IS NULL
