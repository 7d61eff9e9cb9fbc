"""The asyncio server: sessions, dump sessions, the relay."""
