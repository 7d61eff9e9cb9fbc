"""`python -m ibb` is `ibb`."""

from ibb.cli.main import main

main()
