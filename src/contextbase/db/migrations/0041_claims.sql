-- A claim of runs in one trip. Each of its statements sees what was committed before: the runs that the machine holds are
-- counted after its row is locked, so that its limits hold exactly however many of its claims are under way.
--
-- At most `most` runs for a machine, which may hold `most_running` at a time, `most_starting` of them at their start. A
-- machine that is drained gets those whose folder it has; one that is not registered gets none. What others are claiming is
-- left to them. Best first.
CREATE FUNCTION claim_runs(
    claimant text, most integer, most_running integer, most_starting integer, lease_seconds double precision
) RETURNS TABLE (run agent_runs, lease_until timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    is_open boolean;
    free    integer;
    next_id uuid;
BEGIN
    SELECT NOT is_draining INTO is_open FROM machines WHERE name = claimant FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT least(most, most_running - count(*), most_starting - count(*) FILTER (WHERE starting)) INTO free
    FROM run_queue WHERE state = 'claimed' AND claimed_by = claimant;
    -- One by one, each found by its key: a join of all would read whole tables where these have no statistics yet.
    FOR next_id IN
        SELECT run_id FROM run_queue
        WHERE state = 'ready' AND not_before <= clock_timestamp()
          AND (machine = claimant OR is_open AND machine IS NULL)
        ORDER BY priority DESC, turn, run_id
        LIMIT greatest(free, 0)
        FOR UPDATE SKIP LOCKED
    LOOP
        UPDATE run_queue
        SET state = 'claimed', claimed_by = claimant, starting = true,
            lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
        WHERE run_id = next_id
        RETURNING lease_until INTO claim_runs.lease_until;
        UPDATE agent_runs r
        SET state = 'claimed', attempt = r.attempt + 1, machine = claimant, state_at = clock_timestamp(), reason = NULL,
            message = NULL,
            phases = r.phases || jsonb_build_object(
                'queued', coalesce((r.phases ->> 'queued')::bigint, 0)
                          + round(extract(epoch FROM clock_timestamp() - r.state_at) * 1000)::bigint)
        WHERE r.id = next_id
        RETURNING r.* INTO run;
        RETURN NEXT;
    END LOOP;
END
$$;
