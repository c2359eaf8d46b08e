"""Times of real machines: what was measured, the law that fits it, and what it predicts."""
