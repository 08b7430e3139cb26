"""The HTTP API: routes that parse, call one use case and present; problems, auth and the event stream."""
