"""``fairpool run``: a command with resources, from the queue to its exit code."""
