"""Published evaluations computed anew, beside the numbers that were published."""
