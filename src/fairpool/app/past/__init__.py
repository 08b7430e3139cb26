"""How things were at a moment of the past: rules from the history, holdings from the requests."""
