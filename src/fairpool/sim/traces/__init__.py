"""Traces of real workloads, each format in a module of its own."""
