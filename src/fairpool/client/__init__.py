"""The client: typed calls over HTTP, leases renewed, a local server started on demand."""
