"""Steps, pipelines, settings, stacks, artifacts and the context a running step sees."""
