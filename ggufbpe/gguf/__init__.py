"""The container: reading its metadata, changing it, and the types that its keys have; not what tokens mean."""
