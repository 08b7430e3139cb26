"""Use cases, the scheduler loop, leases and authorisation around the decision core; knows ports, no drivers."""
