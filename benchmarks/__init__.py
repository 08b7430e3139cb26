"""What is measured, against what, and the recorded ranges with their reasons (README.md). Run: `make bench`."""
