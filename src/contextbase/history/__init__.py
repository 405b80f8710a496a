"""What people do with a project's past: name snapshots, compare, blame, take out; through the gate's own rules."""
