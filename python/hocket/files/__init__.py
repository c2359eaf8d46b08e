"""Reading and writing files, for every package: nothing here knows a network, a plan or a workload."""
