"""Where granted work runs: one package per kind of machine park, unaware of one another."""
