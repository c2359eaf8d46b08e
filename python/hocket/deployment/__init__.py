"""Deployed folders: plans for the groups of a job, which call takes which, and how a call runs."""

MANIFEST = "deploy.json"
"""Name of the file in a deployed folder that describes it."""
