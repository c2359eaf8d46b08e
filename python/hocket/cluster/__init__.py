"""Clusters: hosts on a fabric, the jobs that train on them, and where each job lies."""
