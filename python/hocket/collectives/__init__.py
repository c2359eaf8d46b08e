"""Collectives: what has to be done (`collective`), and what doing it came to (`outcome`)."""
