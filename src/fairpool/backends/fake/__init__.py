"""A backend that only pretends, for tests and simulations."""
