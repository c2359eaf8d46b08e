"""Plans and schedules: how they are made, proved, spread over equal paths, kept and read."""
