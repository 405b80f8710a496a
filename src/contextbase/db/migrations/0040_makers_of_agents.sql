-- Who answers for an agent, or whoever else has tokens and no account: the person who made it. When that person leaves, its
-- tokens are refused and what it has at work stops. NULL: the owner made it, or the server.
ALTER TABLE principals ADD COLUMN made_by uuid REFERENCES principals;
CREATE INDEX principals_made_by ON principals (made_by) WHERE made_by IS NOT NULL;

-- Whether a person is enabled and has a role in the project; in any, if it is NULL.
CREATE FUNCTION may_work_in(person uuid, project uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM users u JOIN user_role_bindings b ON b.principal_id = u.principal_id
                   WHERE u.principal_id = person AND u.disabled_at IS NULL
                     AND (b.role = 'platform_admin' OR project IS NULL
                          OR (b.scope_kind = 'project' AND b.scope_id = project::text)))
$$;
