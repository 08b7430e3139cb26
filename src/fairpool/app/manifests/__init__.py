"""Rules as documents: what applying them would change, what that does to work, and doing it. No files, no HTTP."""
