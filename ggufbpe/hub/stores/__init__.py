"""The stores in which other programs keep models on this machine, one module per program."""
