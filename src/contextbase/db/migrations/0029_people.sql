-- People: their accounts, their departments, and which role each of them has where.

CREATE TABLE departments (
    name        text        PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),  -- never changes: scopes name it
    title       text        NOT NULL DEFAULT '' CHECK (octet_length(title) <= 400),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A person, or a service that acts like one. The slug is the name of the principal, which never changes. Principals that
-- are not here have no roles: what they may do is what their tokens say.
CREATE TABLE users (
    principal_id  uuid        PRIMARY KEY REFERENCES principals,
    login_name    text        NOT NULL CHECK (login_name ~ '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}$'),
    display_name  text        NOT NULL DEFAULT '' CHECK (octet_length(display_name) <= 400),
    email         text        CHECK (octet_length(email) BETWEEN 3 AND 320),
    department    text        REFERENCES departments,
    is_service    boolean     NOT NULL DEFAULT false,                      -- has tokens, and never logs in
    disabled_at   timestamptz,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX users_login_name ON users (lower(login_name));
CREATE UNIQUE INDEX users_email ON users (lower(email)) WHERE email IS NOT NULL;
CREATE INDEX users_department ON users (department) WHERE department IS NOT NULL;

INSERT INTO users (principal_id, login_name, display_name) SELECT id, name, 'Owner' FROM principals WHERE is_owner;

CREATE FUNCTION principals_keep_their_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a principal keeps its name' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'principals_keep_their_names';
END
$$;
CREATE TRIGGER principals_keep_their_names BEFORE UPDATE OF name ON principals
    FOR EACH ROW WHEN (OLD.name <> NEW.name) EXECUTE FUNCTION principals_keep_their_names();

CREATE VIEW roles (name, description) AS VALUES
    ('platform_admin', 'May do everything everywhere.'),
    ('app_admin', 'Uses and administers one app.'),
    ('project_admin', 'Works in and administers one project.'),
    ('member', 'Uses apps, works in projects, and manages what is their own.');

CREATE TABLE user_role_bindings (
    principal_id  uuid        NOT NULL REFERENCES users,
    role          text        NOT NULL CHECK (role IN ('platform_admin', 'app_admin', 'project_admin', 'member')),
    scope_kind    text        NOT NULL CHECK (scope_kind IN ('platform', 'app', 'project', 'user', 'department')),
    scope_id      text        COLLATE "C" NOT NULL DEFAULT '',             -- of a project: its id, or APP/NAME
    granted_by    uuid        NOT NULL REFERENCES principals,
    granted_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (principal_id, scope_kind, scope_id, role),
    CHECK ((scope_kind = 'platform') = (scope_id = '')),
    CONSTRAINT roles_fit_their_scopes CHECK (
        role = 'member' OR (role, scope_kind) IN
            (('platform_admin', 'platform'), ('app_admin', 'app'), ('project_admin', 'project')))
);
CREATE INDEX user_role_bindings_scope ON user_role_bindings (scope_kind, scope_id);

CREATE VIEW project_members AS
SELECT scope_id AS project_id, principal_id AS user_id, role, granted_at
FROM user_role_bindings WHERE scope_kind = 'project';
