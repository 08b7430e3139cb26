"""The schema's history. Each step stands for itself and imports no application code: what it did stays what it does."""
