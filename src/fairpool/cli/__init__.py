"""The command line: thin commands over the client, one place that renders."""
