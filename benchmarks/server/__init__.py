"""Latency and load of one local server: durable submissions, grants and wake-ups over HTTP."""
