-- Why a run was canceled, if not because somebody who uses its session wanted that: for its people to read.
ALTER TABLE agent_runs ADD COLUMN cancel_why text;
