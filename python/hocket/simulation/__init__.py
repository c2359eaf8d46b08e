"""Simulations: a plan in time, at link, flow, packet or dimension fidelity, and what is seen in it."""
