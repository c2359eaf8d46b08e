"""Laws with constants that are fitted to what was measured: the tools of `profiles` and `throughput`."""
