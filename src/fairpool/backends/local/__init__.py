"""The backend that starts work as processes on this machine."""
