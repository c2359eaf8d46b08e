"""Files: topologies, plans, runs."""
