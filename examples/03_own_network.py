"""A network that is not a product of anything, from a networkx graph."""

import networkx as nx

import hocket as hk

graph = nx.petersen_graph()
nx.set_edge_attributes(graph, "50 GB/s", "bandwidth")
nx.set_edge_attributes(graph, "500 ns", "latency")
network = hk.topology.from_networkx(graph)
found = network.inspect()
print(f"{found.npus} NPUs, diameter {found.diameter_hops}, connected: {found.connected}")
for kind in ("all-gather", "all-reduce", "all-to-all"):
    best = hk.compare(kind, network, size="10 MB").best
    print(f"{kind}: {best.algorithm}, {best.run.time * 1e6:.1f} us, gap {best.run.gap:.0%}")
