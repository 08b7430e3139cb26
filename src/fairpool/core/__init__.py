"""Pure decisions: which request is granted, evicted, held or rejected, and why. Standard library only."""
