-- name: insert_person
-- Whoever has an account answers for themselves.
WITH answering AS (UPDATE principals SET made_by = NULL WHERE id = $1 AND made_by IS NOT NULL)
INSERT INTO users (principal_id, login_name, display_name, email, department, is_service)
VALUES ($1, $2, $3, $4, $5, $6)

-- name: person
-- By slug; locked until the transaction ends, so that changes of one account wait for each other.
SELECT u.principal_id, p.name AS slug, u.login_name, u.display_name, u.email, u.department, u.is_service,
       u.disabled_at IS NOT NULL AS is_disabled, p.is_owner, u.created_at
FROM users u JOIN principals p ON p.id = u.principal_id
WHERE p.kind = 'user' AND p.name = $1
FOR UPDATE OF u

-- name: people_page
-- By slug, after a slug.
SELECT u.principal_id, p.name AS slug, u.login_name, u.display_name, u.email, u.department, u.is_service,
       u.disabled_at IS NOT NULL AS is_disabled, p.is_owner, u.created_at
FROM users u JOIN principals p ON p.id = u.principal_id
WHERE p.name > $1 AND ($3::text IS NULL OR u.department = $3)
ORDER BY p.name
LIMIT $2

-- name: change_person
UPDATE users SET login_name = $2, display_name = $3, email = $4, department = $5,
       disabled_at = CASE WHEN $6 THEN coalesce(disabled_at, $7) END
WHERE principal_id = $1

-- name: insert_department
INSERT INTO departments (name, title) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true

-- name: change_department
UPDATE departments SET title = $2 WHERE name = $1 RETURNING true

-- name: delete_department
DELETE FROM departments WHERE name = $1 RETURNING true

-- name: delete_department_bindings
DELETE FROM user_role_bindings WHERE scope_kind = 'department' AND scope_id = $1

-- name: departments
SELECT d.name, d.title, count(u.principal_id) AS people
FROM departments d LEFT JOIN users u ON u.department = d.name
GROUP BY d.name ORDER BY d.name

-- name: department_exists
SELECT EXISTS (SELECT FROM departments WHERE name = $1)

-- name: project_id_by_name
SELECT id FROM projects WHERE deleted_at IS NULL AND (name = $1 OR id::text = $1)

-- name: insert_binding
INSERT INTO user_role_bindings (principal_id, role, scope_kind, scope_id, granted_by, granted_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING true

-- name: delete_binding
DELETE FROM user_role_bindings
WHERE principal_id = $1 AND role = $2 AND scope_kind = $3 AND scope_id = $4 RETURNING true

-- name: bindings
-- Of a person, or in a scope, or (NULL) all, in pages by person and scope.
SELECT p.name AS slug, b.role, b.scope_kind, b.scope_id, b.granted_at, g.kind || ':' || g.name AS granted_by,
       coalesce(j.name, b.scope_id) AS place
FROM user_role_bindings b
JOIN principals p ON p.id = b.principal_id
JOIN principals g ON g.id = b.granted_by
LEFT JOIN projects j ON b.scope_kind = 'project' AND j.id::text = b.scope_id
WHERE ($1::text IS NULL OR p.name = $1)
  AND ($2::text IS NULL OR (b.scope_kind = $2 AND b.scope_id = $3))
ORDER BY p.name, b.scope_kind, b.scope_id, b.role
LIMIT $4 OFFSET $5
