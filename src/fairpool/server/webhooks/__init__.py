"""Telling webhooks' receivers what becomes of requests: what they are told, how it gets there, and that it does."""
