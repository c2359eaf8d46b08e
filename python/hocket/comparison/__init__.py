"""Comparisons: every algorithm that applies, planned, proved, simulated and ranked."""
