"""Files that the SDK reads."""
