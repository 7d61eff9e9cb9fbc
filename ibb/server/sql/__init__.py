"""SQL as text and as values: lexer, parsers, evaluation, variables, tables."""
