"""What happens to a text on its way to ids, as plain data."""
