-- Apps: who sees them, how their sessions are composed and configured. The names are those of the product's documents.

CREATE TABLE apps (
    id           uuid        PRIMARY KEY,
    name         text        NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,49}$'),
    title        text        NOT NULL CHECK (octet_length(title) BETWEEN 1 AND 200),
    description  text        NOT NULL DEFAULT '' CHECK (octet_length(description) <= 4096),
    icon         text        NOT NULL DEFAULT '' CHECK (octet_length(icon) <= 65536),
    enabled      boolean     NOT NULL DEFAULT true,
    owner_id     uuid        NOT NULL REFERENCES principals,
    project_id   uuid        NOT NULL UNIQUE REFERENCES projects,         -- its own tree
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Whom an app is shown to: a department, or everybody with a role. Any rule, or being a member, is enough.
CREATE TABLE app_visibility_rules (
    app_id   uuid  NOT NULL REFERENCES apps ON DELETE CASCADE,
    kind     text  NOT NULL CHECK (kind IN ('department', 'role')),
    subject  text  NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 200),
    PRIMARY KEY (app_id, kind, subject)
);

-- To whom an app was granted by name.
CREATE TABLE app_members (
    app_id        uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    principal_id  uuid        NOT NULL REFERENCES principals,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app_id, principal_id)
);
CREATE INDEX app_members_of_principal ON app_members (principal_id);

-- The projects of an app; 'default' is there without a row.
CREATE TABLE app_project_bindings (
    app_id       uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    project      text        NOT NULL CHECK (project ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    description  text        NOT NULL DEFAULT '' CHECK (octet_length(description) <= 4096),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app_id, project)
);

-- How sessions are composed, one row for each version, which never changes: a run can be repeated as it was.
CREATE TABLE runtime_manifests (
    app_id           uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    runtime_version  text        NOT NULL CHECK (runtime_version ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    number           integer     NOT NULL CHECK (number >= 1),             -- the highest is the latest
    manifest         jsonb       NOT NULL CHECK (jsonb_typeof(manifest) = 'object'),
    tree_seq         bigint      NOT NULL CHECK (tree_seq >= 0),           -- of the app's tree: its template is of there
    created_by       uuid        NOT NULL REFERENCES principals,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app_id, runtime_version),
    UNIQUE (app_id, number)
);

CREATE FUNCTION refuse_manifest_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a runtime manifest does not change'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'runtime_manifests_do_not_change';
END
$$;
CREATE TRIGGER runtime_manifests_do_not_change BEFORE UPDATE ON runtime_manifests
    FOR EACH ROW EXECUTE FUNCTION refuse_manifest_change();

-- What each layer says about agents: every version is kept, the highest holds.
CREATE TABLE agent_configs (
    app_id        uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    scope         text        NOT NULL CHECK (scope IN ('app', 'project', 'user')),
    project       text        NOT NULL DEFAULT '',                        -- '' for the scope 'app'
    principal_id  uuid        REFERENCES principals,                       -- of the scope 'user'
    version       integer     NOT NULL CHECK (version >= 1),
    config        jsonb       NOT NULL CHECK (jsonb_typeof(config) = 'object'),
    changed_by    uuid        NOT NULL REFERENCES principals,
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((scope = 'app') = (project = '')),
    CHECK ((scope = 'user') = (principal_id IS NOT NULL)),
    CONSTRAINT agent_configs_one_row_per_version UNIQUE NULLS NOT DISTINCT (app_id, scope, project, principal_id, version)
);

-- Secrets that configurations refer to by name: the keys project/{p}/{user}/auth/… of an app, sealed for their row alone.
CREATE TABLE app_secrets (
    id            uuid        PRIMARY KEY,
    app_id        uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    scope         text        NOT NULL CHECK (scope IN ('app', 'project', 'user')),
    project       text        NOT NULL DEFAULT '',
    principal_id  uuid        REFERENCES principals,
    name          text        NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    sealed        bytea       NOT NULL,
    changed_by    uuid        NOT NULL REFERENCES principals,
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((scope = 'app') = (project = '')),
    CHECK ((scope = 'user') = (principal_id IS NOT NULL)),
    CONSTRAINT app_secrets_one_per_name UNIQUE NULLS NOT DISTINCT (app_id, scope, project, principal_id, name)
);

-- Knowledge bases: folders of an app's tree with a name and tags.
CREATE TABLE knowledge_bases (
    id            uuid        PRIMARY KEY,
    app_id        uuid        NOT NULL REFERENCES apps ON DELETE CASCADE,
    scope         text        NOT NULL CHECK (scope IN ('app', 'project', 'user')),
    project       text        NOT NULL DEFAULT '',
    principal_id  uuid        REFERENCES principals,
    name          text        NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    description   text        NOT NULL DEFAULT '' CHECK (octet_length(description) <= 4096),
    tags          text[]      NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 50),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((scope = 'app') = (project = '')),
    CHECK ((scope = 'user') = (principal_id IS NOT NULL)),
    CONSTRAINT knowledge_bases_one_per_name UNIQUE NULLS NOT DISTINCT (app_id, scope, project, principal_id, name)
);

-- Sessions that an app composes.
CREATE TABLE app_sessions (
    session_id       uuid     PRIMARY KEY REFERENCES agent_sessions ON DELETE CASCADE,
    app_id           uuid     NOT NULL REFERENCES apps,
    project          text     NOT NULL,
    login            text     NOT NULL,
    pinned_version   text,                                                 -- NULL: it follows the latest
    overrides        jsonb    NOT NULL DEFAULT '{}',                       -- the layer 'run' of its configuration
    runtime_version  text,                                                 -- of which what is stored of it was composed
    FOREIGN KEY (app_id, pinned_version) REFERENCES runtime_manifests (app_id, runtime_version),
    FOREIGN KEY (app_id, runtime_version) REFERENCES runtime_manifests (app_id, runtime_version)
);
CREATE INDEX app_sessions_of_app ON app_sessions (app_id);

ALTER TABLE agent_sessions ADD COLUMN app_id uuid REFERENCES apps;         -- that composes it; NULL: it works in a project

-- The product's documents name these; here they are what other tables say.
CREATE VIEW kb_bindings AS
SELECT k.id AS knowledge_base_id, k.app_id, k.scope, nullif(k.project, '') AS project, k.principal_id, k.tags
FROM knowledge_bases k;

CREATE VIEW file_acl_policies AS
SELECT r.id, r.project_id, r.principal_id, r.group_id, r.pattern, r.level, r.created_at
FROM path_rules r;

CREATE VIEW file_audit_logs AS
SELECT a.chain AS project_id, a.number, a.at, a.operator_type, a.principal_id AS operator_id, a.action,
       a.path AS object_path, encode(a.old_hash, 'hex') AS old_etag, encode(a.new_hash, 'hex') AS new_etag,
       a.origin AS source_ip
FROM audit a
WHERE a.path IS NOT NULL;
