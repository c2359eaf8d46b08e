"""How fast training goes on real machines: a law of few constants, fitted to published runs."""
