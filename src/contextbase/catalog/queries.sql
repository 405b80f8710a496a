-- name: insert_app
INSERT INTO apps (id, name, title, description, icon, owner_id, project_id) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: app_by_name
-- With what decides whom it is shown to; $2: whether it was granted to this principal.
SELECT a.*, o.kind AS owner_kind, o.name AS owner_name,
       ARRAY(SELECT r.kind || ':' || r.subject FROM app_visibility_rules r WHERE r.app_id = a.id ORDER BY 1) AS rules,
       EXISTS (SELECT FROM app_members m WHERE m.app_id = a.id AND m.principal_id = $2) AS is_member
FROM apps a JOIN principals o ON o.id = a.owner_id
WHERE a.name = $1

-- name: apps
-- All of them, by name, each with those of its rules ($2 kinds, $3 subjects) that are about whoever asks.
SELECT a.*, o.kind AS owner_kind, o.name AS owner_name, coalesce(r.rules, '{}') AS rules,
       m.principal_id IS NOT NULL AS is_member
FROM apps a
JOIN principals o ON o.id = a.owner_id
LEFT JOIN (
    SELECT v.app_id, array_agg(v.kind || ':' || v.subject) AS rules
    FROM app_visibility_rules v JOIN unnest($2::text[], $3::text[]) AS known (kind, subject) USING (kind, subject)
    GROUP BY v.app_id
) r ON r.app_id = a.id
LEFT JOIN app_members m ON m.app_id = a.id AND m.principal_id = $1
ORDER BY a.name

-- name: update_app
-- What is NULL stays.
UPDATE apps
SET title = coalesce($2, title), description = coalesce($3, description), icon = coalesce($4, icon),
    enabled = coalesce($5, enabled), owner_id = coalesce($6, owner_id), updated_at = clock_timestamp()
WHERE id = $1

-- name: delete_visibility
DELETE FROM app_visibility_rules WHERE app_id = $1

-- name: insert_visibility
INSERT INTO app_visibility_rules (app_id, kind, subject) SELECT $1, * FROM unnest($2::text[], $3::text[])

-- name: members
SELECT p.id, p.kind, p.name, p.is_owner
FROM app_members m JOIN principals p ON p.id = m.principal_id
WHERE m.app_id = $1 ORDER BY p.kind, p.name

-- name: delete_members
DELETE FROM app_members WHERE app_id = $1

-- name: insert_members
INSERT INTO app_members (app_id, principal_id) SELECT $1, unnest($2::uuid[])

-- name: insert_project
INSERT INTO app_project_bindings (app_id, project, description) VALUES ($1, $2, $3)
ON CONFLICT (app_id, project) DO UPDATE SET description = excluded.description

-- name: projects
SELECT project, description FROM app_project_bindings WHERE app_id = $1 ORDER BY project

-- name: has_project
SELECT EXISTS (SELECT FROM app_project_bindings WHERE app_id = $1 AND project = $2)

-- name: insert_manifest
-- NULL if there is this version already.
INSERT INTO runtime_manifests (app_id, runtime_version, number, manifest, tree_seq, created_by)
SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5 FROM runtime_manifests WHERE app_id = $1
ON CONFLICT (app_id, runtime_version) DO NOTHING
RETURNING number

-- name: manifests
SELECT m.*, p.kind AS by_kind, p.name AS by_name
FROM runtime_manifests m JOIN principals p ON p.id = m.created_by
WHERE m.app_id = $1 ORDER BY m.number DESC LIMIT $2

-- name: manifest
-- $2: the version; NULL: the latest.
SELECT m.*, p.kind AS by_kind, p.name AS by_name
FROM runtime_manifests m JOIN principals p ON p.id = m.created_by
WHERE m.app_id = $1 AND ($2::text IS NULL OR m.runtime_version = $2)
ORDER BY m.number DESC LIMIT 1

-- name: lock_app
SELECT id FROM apps WHERE id = $1 FOR NO KEY UPDATE

-- name: insert_config
INSERT INTO agent_configs (app_id, scope, project, principal_id, version, config, changed_by)
SELECT $1, $2, $3, $4, coalesce(max(version), 0) + 1, $5, $6
FROM agent_configs WHERE app_id = $1 AND scope = $2 AND project = $3 AND principal_id IS NOT DISTINCT FROM $4
RETURNING version, changed_at

-- name: config_history
SELECT c.version, c.config, c.changed_at, p.kind AS by_kind, p.name AS by_name
FROM agent_configs c JOIN principals p ON p.id = c.changed_by
WHERE c.app_id = $1 AND c.scope = $2 AND c.project = $3 AND c.principal_id IS NOT DISTINCT FROM $4
ORDER BY c.version DESC LIMIT $5

-- name: config_layers
-- The newest of each layer that holds for a user in a project.
SELECT DISTINCT ON (scope) scope, version, config
FROM agent_configs
WHERE app_id = $1 AND (scope = 'app' OR (scope = 'project' AND project = $2)
                       OR (scope = 'user' AND project = $2 AND principal_id = $3))
ORDER BY scope, version DESC

-- name: put_secret
INSERT INTO app_secrets (id, app_id, scope, project, principal_id, name, sealed, changed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: delete_secret
DELETE FROM app_secrets
WHERE app_id = $1 AND scope = $2 AND project = $3 AND principal_id IS NOT DISTINCT FROM $4 AND name = $5
RETURNING id

-- name: secret_names
SELECT name, changed_at FROM app_secrets
WHERE app_id = $1 AND scope = $2 AND project = $3 AND principal_id IS NOT DISTINCT FROM $4 ORDER BY name

-- name: secrets_for
-- By name, of the nearest layer: the user's before the project's before the app's.
SELECT DISTINCT ON (name) id, name, scope, sealed
FROM app_secrets
WHERE app_id = $1 AND name = ANY ($4) AND (scope = 'app' OR (scope = 'project' AND project = $2)
                                           OR (scope = 'user' AND project = $2 AND principal_id = $3))
ORDER BY name, array_position(ARRAY['user', 'project', 'app'], scope)

-- name: put_knowledge_base
INSERT INTO knowledge_bases (id, app_id, scope, project, principal_id, name, description, tags)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (app_id, scope, project, principal_id, name)
DO UPDATE SET description = excluded.description, tags = excluded.tags, updated_at = clock_timestamp()

-- name: delete_knowledge_base
DELETE FROM knowledge_bases
WHERE app_id = $1 AND scope = $2 AND project = $3 AND principal_id IS NOT DISTINCT FROM $4 AND name = $5
RETURNING id

-- name: knowledge_bases
-- All that hold for a user in a project: the union of the app's, the project's and the user's.
SELECT scope, project, name, description, tags
FROM knowledge_bases
WHERE app_id = $1 AND (scope = 'app' OR (scope = 'project' AND project = $2)
                       OR (scope = 'user' AND project = $2 AND principal_id = $3))
  AND ($4::text[] IS NULL OR tags && $4)
ORDER BY array_position(ARRAY['app', 'project', 'user'], scope), name

-- name: head_of
SELECT head FROM projects WHERE id = $1

-- name: insert_app_session
INSERT INTO app_sessions (session_id, app_id, project, login, pinned_version, overrides) VALUES ($1, $2, $3, $4, $5, $6)

-- name: mark_app_session
UPDATE agent_sessions SET app_id = $2, workspace_kind = $3 WHERE id = $1

-- name: app_session
SELECT s.*, a.name AS app, a.project_id
FROM app_sessions s JOIN apps a ON a.id = s.app_id
WHERE s.session_id = $1

-- name: pin_app_session
UPDATE app_sessions SET pinned_version = $2 WHERE session_id = $1

-- name: put_app_session_version
UPDATE app_sessions SET runtime_version = $2 WHERE session_id = $1 AND runtime_version IS DISTINCT FROM $2

-- name: tree_below
-- A folder of a snapshot, in path order.
SELECT v.path, v.kind, v.content_hash, v.size, v.executable
FROM versions v
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
  AND v.path >= $3::text || '/' AND v.path < $3::text || '0'
ORDER BY v.path

-- name: tree_at
SELECT v.path, v.kind, v.content_hash, v.size, v.executable
FROM versions v
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind <> 'deleted'
  AND v.path = ANY ($3)
