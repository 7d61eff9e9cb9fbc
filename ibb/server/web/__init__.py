"""The pages for administrators: a small web server inside the server's own event loop."""
