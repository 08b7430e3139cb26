"""Scenarios in virtual time around the real core: policies tested like code, and the notation of bug reports."""
