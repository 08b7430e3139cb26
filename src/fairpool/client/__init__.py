"""The HTTP client: retries, problems as exceptions, and starting a local server on demand."""
