"""What runs a server and looks after it: start, migrate, doctor, backup."""
