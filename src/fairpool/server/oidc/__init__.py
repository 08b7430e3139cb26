"""Signing in at a company's own identity provider, with OpenID Connect. Only this package speaks to providers."""
