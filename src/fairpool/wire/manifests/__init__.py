"""Rules as files: the documents that people write, where each stands in its file, and what applying them says."""
