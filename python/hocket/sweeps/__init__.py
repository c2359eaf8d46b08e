"""Sweeps: one command over many points on all cores or on a Ray cluster; and networks for a budget."""
