"""Request and response schemas and problem types: what both lanes say over HTTP."""
