"""Side-by-side benchmarks: `python -m bench.NAME [--json]`."""
