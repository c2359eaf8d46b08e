"""Pictures of networks, comparisons and runs."""
