"""Reading and writing files, for every room: nothing here knows a network, a plan or a workload."""
