"""The decision core: pure, deterministic, standard library only. Start with README.md in this folder."""
