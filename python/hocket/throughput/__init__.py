"""The speed of training on real machines: a law of few constants, fitted to published runs."""
