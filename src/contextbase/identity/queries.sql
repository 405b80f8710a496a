-- name: insert_principal
-- Make a principal, unless it exists: then nothing happens, also when somebody else is making it this very moment.
INSERT INTO principals (id, kind, name, is_owner, made_by) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING

-- name: adopt_principal
-- If the person who made it may not work in the project $3 any more, $2 answers for it from now on (NULL: the owner). What
-- the other one may still have, its tokens, is revoked. True, and nothing of that, if it is at work for that person in
-- another project: agents have one name for all projects, and nobody takes one away by using its name. $3 NULL: all
-- projects, as a project that does not exist: administrators of the platform alone may work there.
WITH asked AS (
    SELECT p.id,
           EXISTS (SELECT FROM tokens t
                   WHERE t.principal_id = p.id AND t.revoked_at IS NULL AND t.expires_at > clock_timestamp()
                     AND t.project_id IS NOT NULL AND may_work_in(p.made_by, t.project_id))
           OR EXISTS (SELECT FROM workspaces w
                      WHERE w.principal_id = p.id AND w.state = 'open' AND may_work_in(p.made_by, w.project_id))
           AS is_at_work
    FROM principals p WHERE p.id = $1 AND p.made_by IS NOT NULL
      AND NOT may_work_in(p.made_by, coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'))
), adopted AS (
    UPDATE principals SET made_by = $2 FROM asked WHERE principals.id = asked.id AND NOT asked.is_at_work
    RETURNING principals.id
), revoked AS (
    UPDATE tokens SET revoked_at = clock_timestamp()
    FROM adopted WHERE tokens.principal_id = adopted.id AND tokens.revoked_at IS NULL
)
SELECT is_at_work FROM asked

-- name: has_maker
SELECT EXISTS (SELECT FROM principals WHERE id = $1 AND made_by IS NOT NULL)

-- name: principal_by_name
SELECT id, kind, name, is_owner FROM principals WHERE kind = $1 AND name = $2

-- name: insert_token
INSERT INTO tokens (id, principal_id, name, secret_hash, actions, project_id, path_prefix, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: tokens_by_secret
-- The tokens that secrets belong to, with their principals; expired and revoked ones too, so that the answer can say so.
SELECT t.secret_hash, t.id, t.name, t.actions, t.project_id, t.path_prefix, t.created_at, t.expires_at, t.revoked_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner,
       u.principal_id IS NOT NULL AS is_person, p.made_by
FROM tokens t JOIN principals p ON p.id = t.principal_id LEFT JOIN users u ON u.principal_id = p.id AND NOT p.is_owner
WHERE t.secret_hash = ANY ($1::bytea[])

-- name: rights_of_people
-- What the roles of people give; nobody else, and not the owner, has any.
SELECT u.principal_id, p.name AS slug, u.department, u.disabled_at IS NOT NULL AS is_disabled,
       coalesce(array_agg(ARRAY[b.role, b.scope_kind, b.scope_id]) FILTER (WHERE b.role IS NOT NULL),
                '{}') AS bindings
FROM users u JOIN principals p ON p.id = u.principal_id AND NOT p.is_owner
LEFT JOIN user_role_bindings b ON b.principal_id = u.principal_id
WHERE u.principal_id = ANY ($1::uuid[])
GROUP BY u.principal_id, p.name

-- name: ensure_owner_account
INSERT INTO users (principal_id, login_name, display_name)
SELECT id, name, 'Owner' FROM principals WHERE id = $1 ON CONFLICT (principal_id) DO NOTHING

-- name: is_person
SELECT EXISTS (SELECT FROM users WHERE principal_id = $1 AND NOT is_service)

-- name: token_page
-- Tokens by age, newest first, before $1: those limited to project $3, or (NULL) all; the owner's only if $4 says so;
-- if $5 is given, its own and those of the projects $6 alone.
SELECT t.id, t.name, t.actions, t.project_id, t.path_prefix, t.created_at, t.expires_at, t.revoked_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner
FROM tokens t JOIN principals p ON p.id = t.principal_id
WHERE ($1::uuid IS NULL OR t.id < $1) AND ($3::uuid IS NULL OR t.project_id = $3) AND ($4 OR NOT p.is_owner)
  AND ($5::uuid IS NULL OR t.principal_id = $5 OR t.project_id = ANY ($6::uuid[]))
ORDER BY t.id DESC
LIMIT $2

-- name: token_by_id
SELECT t.id, t.name, t.actions, t.project_id, t.path_prefix, t.created_at, t.expires_at, t.revoked_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner, p.made_by
FROM tokens t JOIN principals p ON p.id = t.principal_id
WHERE t.id = $1

-- name: revoke_token
-- Revoke once; no row when it was revoked before.
UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING true

-- name: project_exists
SELECT EXISTS (SELECT FROM projects WHERE id = $1 AND deleted_at IS NULL)

-- name: lock_policy
-- A project's policy, held to the end of the transaction: a commit under way is planned again if it changes.
SELECT policy_version, default_level FROM projects WHERE id = $1 AND deleted_at IS NULL FOR UPDATE

-- name: read_policy
SELECT policy_version, default_level FROM projects WHERE id = $1 AND deleted_at IS NULL

-- name: bump_policy
UPDATE projects SET policy_version = policy_version + 1 WHERE id = $1

-- name: bump_policies_of_group
-- Whoever joins or leaves a group may gain or lose rights in every project that has rules for it.
UPDATE projects SET policy_version = policy_version + 1
WHERE id IN (SELECT p.id FROM projects p
             WHERE EXISTS (SELECT FROM path_rules r WHERE r.project_id = p.id AND r.group_id = $1)
             ORDER BY p.id FOR UPDATE)

-- name: path_rules
-- A project's rules with the names of their subjects.
SELECT r.id, r.pattern, r.level, r.principal_id, r.group_id,
       coalesce(p.kind || ':' || p.name, g.name, '') AS subject_name
FROM path_rules r
LEFT JOIN principals p ON p.id = r.principal_id
LEFT JOIN groups g ON g.id = r.group_id
WHERE r.project_id = $1
ORDER BY r.pattern, g.name, p.kind, p.name

-- name: put_path_rule
INSERT INTO path_rules (id, project_id, principal_id, group_id, pattern, level) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT ON CONSTRAINT path_rules_one_per_subject_and_pattern DO UPDATE SET level = excluded.level
RETURNING id

-- name: delete_path_rule
DELETE FROM path_rules
WHERE project_id = $1 AND principal_id IS NOT DISTINCT FROM $2 AND group_id IS NOT DISTINCT FROM $3 AND pattern = $4
RETURNING level

-- name: put_default_level
UPDATE projects SET default_level = $2 WHERE id = $1

-- name: merge_rules
SELECT pattern, strategy FROM merge_rules WHERE project_id = $1 ORDER BY position

-- name: delete_merge_rules
DELETE FROM merge_rules WHERE project_id = $1

-- name: insert_merge_rules
INSERT INTO merge_rules (project_id, position, pattern, strategy)
SELECT $1, position, pattern, strategy
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS rule (pattern, strategy, position)

-- name: lease_rules
SELECT pattern, binding FROM lease_rules WHERE project_id = $1 ORDER BY position

-- name: delete_lease_rules
DELETE FROM lease_rules WHERE project_id = $1

-- name: insert_lease_rules
INSERT INTO lease_rules (project_id, position, pattern, binding)
SELECT $1, position, pattern, binding
FROM unnest($2::text[], $3::boolean[]) WITH ORDINALITY AS rule (pattern, binding, position)

-- name: ranks
SELECT p.kind, p.name, k.rank FROM ranks k JOIN principals p ON p.id = k.principal_id
WHERE k.project_id = $1 ORDER BY k.rank DESC, p.kind, p.name

-- name: put_rank
INSERT INTO ranks (project_id, principal_id, rank) VALUES ($1, $2, $3)
ON CONFLICT (project_id, principal_id) DO UPDATE SET rank = excluded.rank

-- name: delete_rank
DELETE FROM ranks WHERE project_id = $1 AND principal_id = $2

-- name: principals_by_name
SELECT id, kind, name, is_owner FROM principals WHERE name = $1 AND ($2::text IS NULL OR kind = $2) ORDER BY kind

-- name: groups_of_principal
SELECT group_id FROM group_members WHERE principal_id = $1

-- name: group_by_name
SELECT id FROM groups WHERE name = $1

-- name: insert_group
INSERT INTO groups (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id

-- name: group_page
-- Groups by name, after a name, each with its members.
SELECT g.name, coalesce(array_agg(p.kind || ':' || p.name ORDER BY p.kind, p.name) FILTER (WHERE p.id IS NOT NULL),
                        '{}') AS members
FROM groups g
LEFT JOIN group_members m ON m.group_id = g.id
LEFT JOIN principals p ON p.id = m.principal_id
WHERE g.name > $1
GROUP BY g.id
ORDER BY g.name
LIMIT $2

-- name: add_member
INSERT INTO group_members (group_id, principal_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true

-- name: remove_member
DELETE FROM group_members WHERE group_id = $1 AND principal_id = $2 RETURNING true
