"""The fastest plan for each size: predicted, or measured on this machine, and kept in a table."""
