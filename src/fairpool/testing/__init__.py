"""The test kit: builders, a clock, scenarios and conformance suites that take a factory."""
