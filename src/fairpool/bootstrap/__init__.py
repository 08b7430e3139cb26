"""Settings, read once from environment and file, and the wiring of the server lane."""
