"""Expressions, with the precedence of MariaDB's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.character_sets import COLLATIONS, OTHER_CHARSETS
from ibb.protocol.character_sets import DEFAULT_COLLATIONS as CLIENT_CHARSETS
from ibb.protocol.error_codes import (
    NOT_SUPPORTED_YET,
    UNKNOWN_CHARACTER_SET,
    UNKNOWN_COLLATION,
    WRONG_VALUE,
)

from .cursor import NESTING_MAX, OPERATIONS_MAX, TokenCursor
from .expressions import (
    COUNT_DISTINCT,
    AssignUser,
    Call,
    Case,
    Cast,
    ColumnName,
    Interval,
    Literal,
    Operation,
    Placeholder,
    Star,
    SystemVariableName,
    UserVariable,
)
from .functions import is_offered
from .functions_time import moment_of
from .lexer import Kind
from .operators import ARITHMETIC, COMPARISONS, CONSTANTS, LOGICAL, RESERVED, UNITS
from .types import DATE_CHARS, DATETIME_CHARS, NULL, SqlType, Typed, number_as_written, text_type
from .types import Kind as TypeKind

if TYPE_CHECKING:
    from .expressions import Expression
    from .lexer import Token

SCOPES: Final = {"GLOBAL": "GLOBAL", "SESSION": "SESSION", "LOCAL": "SESSION"}

_BOOLEANS: Final = {"TRUE": 1, "FALSE": 0}
_BOOLEAN_TYPE: Final = SqlType(TypeKind.INTEGER, 5, signed_digits=False)


class ExpressionParser(TokenCursor):
    """
    A cursor that reads expressions.

    Attributes:
        clause: where a column's name stands, for the error that there is none.
    """

    clause = "SELECT"
    _depth = 0
    _operations = 0  # of the outermost expression that is being read

    def expression(self) -> Expression:
        """Read one expression; raises SqlError 1064."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self.error()
        if self._depth == 1:
            self._operations = 0
        token = self.peek()
        if token.kind is Kind.USER_VARIABLE and self.peek(1).is_sign(":="):
            self.take()
            self.take()
            found: Expression = AssignUser(token.text, self.expression())
        else:
            found = self._logical(0)
        if isinstance(found, Interval):
            raise self.error()
        self._depth -= 1
        return found

    def expressions(self) -> tuple[Expression, ...]:
        """Read expressions with commas between them."""
        found = [self.expression()]
        while self.skip_sign(","):
            found.append(self.expression())
        return tuple(found)

    def _operator(self, operators: dict[str, str]) -> str | None:
        """Take one of *operators* if it is next, and return its name."""
        token = self.peek()
        if token.kind not in (Kind.SIGN, Kind.WORD):
            return None
        found = operators.get(token.text.upper())
        if found is not None:
            self.take()
        return found

    def _operation(self, name: str, operands: tuple[Expression, ...]) -> Operation:
        """Return an operation; raises SqlError 1064 if there are too many behind one another."""
        self._operations += 1
        if self._operations > OPERATIONS_MAX:
            raise self.error()
        return Operation(name, operands)

    def _logical(self, level: int) -> Expression:
        if level == len(LOGICAL):
            return self._negation()
        left = self._logical(level + 1)
        while (operator := self._operator(LOGICAL[level])) is not None:
            left = self._operation(operator, (left, self._logical(level + 1)))
        return left

    def _negation(self) -> Expression:
        negations = 0
        while self.skip_word("NOT"):
            negations += 1
        found = self._comparison()
        for _ in range(negations):
            found = self._operation("NOT", (found,))
        return found

    def _comparison(self) -> Expression:
        left = self._arithmetic(0)
        while True:
            operator = self._operator(COMPARISONS)
            if operator is not None:
                left = self._operation(operator, (left, self._arithmetic(0)))
            elif self.skip_word("IS"):
                negated = self.skip_word("NOT")
                test = self.expect_word("NULL", "TRUE", "FALSE", "UNKNOWN")
                left = self._operation(f"IS {'NULL' if test == 'UNKNOWN' else test}", (left,))
                left = self._operation("NOT", (left,)) if negated else left
            elif self.peek().is_word("NOT") and self.peek(1).is_word(
                "LIKE", "IN", "BETWEEN", "REGEXP", "RLIKE"
            ):
                self.take()
                left = self._operation("NOT", (self._predicate(left),))
            elif self.peek().is_word("LIKE", "IN", "BETWEEN", "REGEXP", "RLIKE"):
                left = self._predicate(left)
            else:
                return left

    def _predicate(self, left: Expression) -> Expression:
        """Read LIKE, IN, BETWEEN or REGEXP behind *left*."""
        word = self.take().text.upper()
        if word == "LIKE":
            operands: tuple[Expression, ...] = (left, self._arithmetic(0))
            if self.skip_word("ESCAPE"):
                operands += (self._arithmetic(0),)
            return self._operation("LIKE", operands)
        if word == "IN":
            self.expect_sign("(")
            values = self.expressions()
            self.expect_sign(")")
            return self._operation("IN", (left, *values))
        low = self._arithmetic(0)
        if word != "BETWEEN":
            return self._operation("REGEXP", (left, low))
        self.expect_word("AND")
        return self._operation("BETWEEN", (left, low, self._arithmetic(0)))

    def _arithmetic(self, level: int) -> Expression:
        if level == len(ARITHMETIC):
            return self._unary()
        left = self._arithmetic(level + 1)
        while (operator := self._operator(ARITHMETIC[level])) is not None:
            left = self._operation(operator, (left, self._arithmetic(level + 1)))
        return left

    def _unary(self) -> Expression:
        token = self.peek()
        if token.is_sign("-"):
            self.take()
            if self.peek().kind is Kind.NUMBER:
                return Literal(number_as_written(self.take().text, negative=True))
            return Operation("NEGATE", (self._deeper(),))
        if token.is_sign("+"):
            self.take()
            return self._deeper()
        if token.is_sign("~") or token.is_sign("!"):
            self.take()
            return Operation("~" if token.is_sign("~") else "NOT", (self._deeper(),))
        if self.skip_word("BINARY"):
            return Cast(self._deeper(), "BINARY", ())
        found = self._primary()
        return self._collated(found) if self.skip_word("COLLATE") else found

    def _collated(self, found: Expression) -> Expression:
        """Read a collation: one of bytes compares these, others tell no case apart."""
        name = self.name()
        known = name.lower().replace("utf8_", "utf8mb3_")
        if known not in COLLATIONS:
            raise UNKNOWN_COLLATION.error(name)
        return found if known.endswith("_ci") else Cast(found, "BINARY", ())

    def _deeper(self) -> Expression:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self.error()
        found = self._unary()
        self._depth -= 1
        return found

    def _primary(self) -> Expression:
        token = self.take()
        match token.kind:
            case Kind.NUMBER:
                return Literal(number_as_written(token.text))
            case Kind.STRING:
                return Literal(self._text(token))
            case Kind.BYTES:
                data = bytes.fromhex(token.text)
                type_ = SqlType(TypeKind.BINARY, len(data), unsigned=True)
                return Literal(Typed(data, type_))
            case Kind.USER_VARIABLE:
                return UserVariable(token.text)
            case Kind.SYSTEM_VARIABLE:
                return self.system_variable(token)
            case Kind.QUOTED:
                return self._column(token)
            case Kind.WORD:
                return self._word(token)
        if token.is_sign("("):
            if self.peek().is_word("SELECT", "WITH", "VALUES"):
                raise NOT_SUPPORTED_YET.error("subqueries")
            found = self.expression()
            self.expect_sign(")")
            return found
        if token.is_sign("?") and self._prepares:
            self.placeholders += 1
            return Placeholder(self.placeholders - 1)
        raise self.error(token)

    def _text(self, token: Token) -> Typed:
        text = token.text
        while self.peek().kind is Kind.STRING:  # 'a' 'b' is one text
            text += self.take().text
        return Typed(text, text_type(len(text), nullable=False))

    def system_variable(self, token: Token) -> SystemVariableName:
        """Return the variable that a token names; raises SqlError 1064 for an unknown scope."""
        scope, dot, name = token.text.rpartition(".")
        if not dot:
            return SystemVariableName("", token.text)
        known = SCOPES.get(scope.upper())
        if known is None:
            raise self.error(token)
        return SystemVariableName(known, name)

    def _word(self, token: Token) -> Expression:
        word = token.text.upper()
        if word == "NULL":
            return Literal(NULL)
        if word in _BOOLEANS:
            return Literal(Typed(_BOOLEANS[word], _BOOLEAN_TYPE))
        if word == "CASE":
            return self._case()
        if word in ("CAST", "CONVERT") and self.peek().is_sign("("):
            return self._cast(word)
        if word == "INTERVAL" and not self.peek().is_sign("("):
            value = self._arithmetic(0)
            return Interval(value, self.expect_word(*UNITS))
        if word in ("DATE", "TIMESTAMP") and self.peek().kind is Kind.STRING:
            return self._moment(word)
        if word.startswith("_") and self.peek().kind in (Kind.STRING, Kind.BYTES):
            charset = word[1:].lower()
            if charset in CLIENT_CHARSETS:
                return Cast(self._primary(), f"_{charset}", ())
            if charset in OTHER_CHARSETS:
                raise NOT_SUPPORTED_YET.error(f"the character set {charset}")
        if self.skip_sign("("):
            return self._call(token.text)
        if word in CONSTANTS:
            return Call(token.text, ())
        if word in RESERVED:
            raise self.error(token)
        return self._column(token)

    def _moment(self, word: str) -> Literal:
        """Read the text behind DATE or TIMESTAMP."""
        text = self.take().text
        moment = moment_of(text)
        if moment is None:
            raise WRONG_VALUE.error("DATETIME" if word == "TIMESTAMP" else word, text)
        if word == "DATE":
            return Literal(Typed(moment.date(), SqlType(TypeKind.DATE, DATE_CHARS)))
        return Literal(Typed(moment, SqlType(TypeKind.DATETIME, DATETIME_CHARS)))

    def _column(self, token: Token) -> Expression:
        names = [token.text]
        while self.skip_sign("."):
            if len(names) < 3 and self.skip_sign("*"):
                return Star()
            names.append(self.name())
            if self.skip_sign("("):
                return self._call(".".join(names))
        return ColumnName(names[-2] if len(names) > 1 else "", names[-1], self.clause)

    def _call(self, name: str) -> Expression:
        """Read the arguments of a function, behind its parenthesis."""
        if not is_offered(name):
            raise NOT_SUPPORTED_YET.error(f"{name.upper()}()")
        if self.skip_sign(")"):
            return Call(name, ())
        if name.upper() == "COUNT" and self.skip_sign("*"):
            self.expect_sign(")")
            return Call(name, (Star(),))
        if self.skip_word("DISTINCT"):
            if name.upper() != "COUNT":
                raise NOT_SUPPORTED_YET.error(f"{name}(DISTINCT)")
            name = COUNT_DISTINCT
        if self.peek().is_word("BOTH", "LEADING", "TRAILING", "SELECT"):
            raise NOT_SUPPORTED_YET.error(f"{name.upper()}({self.peek().text.upper()} ...)")
        arguments = [self.expression()]
        while self.skip_sign(",") or (
            name.upper() in ("SUBSTRING", "SUBSTR", "TRIM") and self.skip_word("FROM", "FOR")
        ):
            arguments.append(self.expression())
        self.expect_sign(")")
        if name.upper() == "MOD" and len(arguments) == 2:
            return self._operation("%", (arguments[0], arguments[1]))
        return Call(name, tuple(arguments))

    def _case(self) -> Case:
        subject = None if self.peek().is_word("WHEN") else self.expression()
        branches = []
        while self.skip_word("WHEN"):
            condition = self.expression()
            if subject is not None:
                condition = Operation("=", (subject, condition))
            self.expect_word("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.skip_word("ELSE") else None
        self.expect_word("END")
        if not branches:
            raise self.error()
        return Case(tuple(branches), otherwise)

    def _cast(self, word: str) -> Cast:
        self.expect_sign("(")
        value = self.expression()
        if word == "CONVERT" and self.skip_word("USING"):
            charset = self.name()
            if charset.lower() in OTHER_CHARSETS:
                raise NOT_SUPPORTED_YET.error(f"the character set {charset}")
            if charset.lower() not in CLIENT_CHARSETS:
                raise UNKNOWN_CHARACTER_SET.error(charset)
            self.expect_sign(")")
            return Cast(value, "TEXT", ())
        if word == "CAST":
            self.expect_word("AS")
        else:
            self.expect_sign(",")
        target = self.expect_word(
            *("CHAR", "SIGNED", "UNSIGNED", "DECIMAL", "DOUBLE", "DATE", "DATETIME", "TIME"),
            *("BINARY", "INTEGER", "INT"),
        )
        if target in ("SIGNED", "UNSIGNED"):
            self.skip_word("INTEGER", "INT")
        sizes: tuple[int, ...] = ()
        if self.skip_sign("("):
            sizes = (self.number(),)
            if self.skip_sign(","):
                sizes += (self.number(),)
            self.expect_sign(")")
        if target == "CHAR" and self.skip_words("CHARACTER", "SET"):
            self.name()
        self.expect_sign(")")
        return Cast(value, target, sizes)
