-- Foreign keys that were checked with every commit, and say no more than others do.

-- Every commit but the first points at the one before it, so all are of the project that the first is of; and a project
-- cannot go, because its event head points at it.
CREATE FUNCTION refuse_commit_of_no_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM projects WHERE id = NEW.project_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = 'the commit is of no project', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END
$$;
-- At the end of the transaction: a restore takes the order in which it loads tables from the foreign keys.
CREATE CONSTRAINT TRIGGER commits_begin_in_a_project AFTER INSERT ON commits DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.seq = 1) EXECUTE FUNCTION refuse_commit_of_no_project();
ALTER TABLE commits DROP CONSTRAINT commits_project_id_fkey;

-- The gate writes answers for a project it has locked and a caller it knows, and forgets them after a while.
ALTER TABLE answered_requests
    DROP CONSTRAINT answered_requests_project_id_fkey,
    DROP CONSTRAINT answered_requests_principal_id_fkey;
