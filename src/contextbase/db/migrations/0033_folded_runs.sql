-- Whether the pieces of a run's texts are gone from its session's stream: they are there as a whole.
ALTER TABLE agent_runs ADD COLUMN is_folded boolean NOT NULL DEFAULT false;
CREATE INDEX agent_runs_to_fold ON agent_runs (ended_at) WHERE NOT is_folded AND ended_at IS NOT NULL;
