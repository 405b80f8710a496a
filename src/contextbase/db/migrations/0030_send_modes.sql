-- What becomes of a message while a run works: it waits, goes into the working turn, or ends that first.

ALTER TABLE agent_runs ADD COLUMN mode text NOT NULL DEFAULT 'queue' CHECK (mode IN ('queue', 'steer', 'interrupt'));

-- As before, and a message that the working turn has taken is done without a run of its own.
CREATE OR REPLACE FUNCTION agent_runs_follow_their_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND NOT (
        (OLD.state, NEW.state) IN (
            ('queued', 'claimed'), ('claimed', 'restoring'), ('restoring', 'linking'), ('linking', 'preparing'),
            ('preparing', 'running'), ('running', 'waiting_human'), ('waiting_human', 'running'),
            ('running', 'syncing'), ('waiting_human', 'syncing'), ('syncing', 'exported'), ('exported', 'succeeded'))
        OR (OLD.state = 'queued' AND NEW.state = 'succeeded' AND NEW.mode = 'steer')
        OR (OLD.state NOT IN ('succeeded', 'failed', 'canceled') AND NEW.state IN ('queued', 'failed', 'canceled')))
    THEN
        RAISE EXCEPTION 'a run does not go from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'agent_runs_follow_their_states';
    END IF;
    IF NEW.attempt <> OLD.attempt + (OLD.state = 'queued' AND NEW.state = 'claimed')::integer THEN
        RAISE EXCEPTION 'an attempt begins when a run is claimed, and only then'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'agent_runs_follow_their_states';
    END IF;
    RETURN NEW;
END
$$;
