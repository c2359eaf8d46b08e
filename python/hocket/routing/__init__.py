"""Path assignment on a Clos or fat tree: which switches each flow between two ToRs crosses.

>>> import hocket as hk
>>> fab = hk.topology.clos(spines=4, tors=8, hosts_per_tor=4, bandwidth="100 Gb/s", latency="1 us")
>>> hk.routing.assign(fab, [(0, 5), (3, 5)], scheme="greedy").spines.tolist()
[0, 1]
"""

from hocket.routing.assignment import SCHEMES, Assignment, Certificate, Loads, assign

__all__ = ["SCHEMES", "Assignment", "Certificate", "Loads", "assign"]
