"""A virtual cluster around the real core and app: traces, faults, policy tests, what-if reports."""
