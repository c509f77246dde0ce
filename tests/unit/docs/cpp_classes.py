"""Parses the classes of C++ sources: their fields, their methods, and which methods call which. No I/O.

It handles the C++ that the product uses, not the whole language. Defaulted and deleted methods count."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cpp_tokens import Code, is_name, past_angles, read

Path = tuple[str, ...]  # namespaces and classes, outermost first

_CLASS = ("class", "struct", "union")
_ACCESS = ("public", "protected", "private")
_NO_MEMBER = ("using", "friend", "static_assert", "concept")
_WITH_PARENTHESES = ("alignas", "decltype", "explicit", "__attribute__", "__launch_bounds__")
# If any other word precedes a name and its parenthesis, it is a declaration, not a call.
_BEFORE_CALL = ("return", "co_return", "co_await", "co_yield", "else", "do", "throw", "case", "not", "and", "or")
_ITSELF = (("this", "->"), ("self", "->"))  # a coroutine or a callback holds its object as `self`


@dataclass(frozen=True)
class Class:
    path: Path
    file: str
    fields: tuple[str, ...]  # without static ones
    methods: tuple[str, ...]  # one entry per declaration of a name


@dataclass(frozen=True)
class Body:
    """A function definition: its parameters, its initialisers and its body."""

    scope: Path  # namespaces and classes around it
    qualifiers: Path  # before the function's name
    name: str
    tokens: tuple[str, ...]


@dataclass
class Unit:
    """The contents of one file. All branches of an `#if` count. Macros are read like functions.

    Classes within functions count, too. An unnamed namespace has the name of the file.
    """

    file: str
    classes: list[Class] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)


@dataclass
class _Members:
    fields: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


def parse(file: str, text: str) -> Unit:
    unit = Unit(file)
    try:
        code = read(text)
        _Reader(code, unit).members(0, len(code.tokens), ())
    except (ValueError, IndexError) as error:
        raise ValueError(f"{file}: {error}") from error
    return unit


class _Reader:
    """Adds what it finds to `unit`. `at` is where a method begins to read; most methods return where they ended."""

    def __init__(self, code: Code, unit: Unit) -> None:
        self._code = code
        self._tokens = code.tokens
        self._unit = unit

    def members(self, at: int, end: int, scope: Path) -> _Members:
        """Reads the members of a class, a namespace or a file."""
        found = _Members()
        while at < end:
            token = self._tokens[at]
            if token == ";":
                at += 1
            elif token in _ACCESS and self._tokens[at + 1] == ":":
                at += 2
            elif token == "[" or token in ("template", "requires"):
                at = self._past_prefix(at)
            elif token in ("namespace", "inline", "extern") and (opened := self._scope(at)):
                names = self._namespaces(at, opened)
                close = self._code.partner[opened]
                self.members(opened + 1, close, (*scope, *names))
                at = close + 1
            elif token in _NO_MEMBER:
                at = self._past_statement(at, end)
            else:
                at = self._declaration(at, end, scope, found)
        return found

    def _past_prefix(self, at: int) -> int:
        if self._tokens[at] == "[":
            return self._code.partner[at] + 1
        if self._tokens[at + 1] == "<":
            return past_angles(self._tokens, at + 1) or at + 1
        return self._code.partner[at + 1] + 1 if self._tokens[at + 1] == "(" else at + 1

    def _scope(self, at: int) -> int | None:
        """The opening brace of a namespace, or of `extern "C"`."""
        if self._tokens[at] == "inline":
            at += 1
        if self._tokens[at] == "namespace":
            while self._tokens[at] not in ("{", "=", ";"):
                at += 1
            return at if self._tokens[at] == "{" else None
        return at + 2 if self._tokens[at : at + 3] == ["extern", '""', "{"] else None

    def _namespaces(self, at: int, opened: int) -> Path:
        if self._tokens[at] == "extern":
            return ()
        names = [each for each in self._tokens[at:opened] if is_name(each) and each not in ("inline", "namespace")]
        return tuple(names) or (self._unit.file,)

    def _past_statement(self, at: int, end: int) -> int:
        """The position after the statement's semicolon, or after the body of a friend."""
        is_friend = self._tokens[at] == "friend"
        while at < end and self._tokens[at] != ";":
            if self._tokens[at] in ("(", "[", "{"):
                ended = is_friend and self._tokens[at] == "{"
                at = self._code.partner[at]
                if ended:
                    break
            at += 1
        return at + 1

    def _declaration(self, at: int, end: int, scope: Path, found: _Members) -> int:
        begin = at
        while at < end:
            token = self._tokens[at]
            if token == "enum":
                at = self._past_enum(at)
                if self._tokens[at] == ";":
                    return at + 1
            elif token in _CLASS and (head := self._class_head(at)):
                at = self._class((*scope, *head[0]), head[1])
                if self._tokens[at] == ";":
                    return at + 1
            elif token in _CLASS and self._tokens[at + 2] == ";":  # a declaration; the definition is elsewhere
                return at + 3
            elif token == "operator":
                at += 3 if self._tokens[at + 1 : at + 3] == ["(", ")"] else 2
                while self._tokens[at] != "(":
                    at += 1
                return self._function(begin, at, scope, found)
            elif token in _WITH_PARENTHESES and self._tokens[at + 1] == "(":
                at = self._code.partner[at + 1] + 1
            elif token == "<":
                at = past_angles(self._tokens, at) or at + 1
            elif token == "[" and self._tokens[at + 1] == "[":
                at = self._code.partner[at] + 1
            elif token == "(" and not self._is_pointer(at):
                return self._function(begin, at, scope, found)
            elif token in ("(", "[", "{", "=", ":", ",", ";"):
                return self._variables(begin, at, end, found)
            else:
                at += 1
        return at

    def _past_enum(self, at: int) -> int:
        while self._tokens[at] not in ("{", ";"):
            at += 1
        return at if self._tokens[at] == ";" else self._code.partner[at] + 1

    def _class_head(self, at: int) -> tuple[Path, int] | None:
        """The name of the class defined here, and the position of its opening brace."""
        parts = [""]
        at += 1
        while at < len(self._tokens):
            token = self._tokens[at]
            if token in ("{", ":"):
                opened = self._past_bases(at)
                return (tuple(part or "(unnamed)" for part in parts), opened) if opened else None
            behind = at + 1
            if token == "[":
                behind = self._code.partner[at] + 1
            elif token == "alignas":
                behind = self._code.partner[at + 1] + 1
            elif token == "::":
                parts.append("")
            elif token == "<":
                behind = past_angles(self._tokens, at) or behind
                parts[-1] += "".join(self._tokens[at:behind])
            elif is_name(token) and not parts[-1]:
                parts[-1] = token
            elif token != "final":
                return None
            at = behind
        return None

    def _past_bases(self, at: int) -> int | None:
        while at < len(self._tokens) and self._tokens[at] != "{":
            if self._tokens[at] == ";":
                return None
            at = (past_angles(self._tokens, at) or at + 1) if self._tokens[at] == "<" else at + 1
        return at

    def _class(self, path: Path, opened: int) -> int:
        close = self._code.partner[opened]
        members = self.members(opened + 1, close, path)
        self._unit.classes.append(Class(path, self._unit.file, tuple(members.fields), tuple(members.methods)))
        return close + 1

    def _is_pointer(self, at: int) -> bool:
        """Whether `(*name)(...)`, `(&name)[4]` or `(Class::*name)(...)` is here."""
        return self._tokens[at + 1] in ("*", "&") or self._tokens[at + 2 : at + 4] == ["::", "*"]

    def _function(self, begin: int, parameters: int, scope: Path, found: _Members) -> int:
        qualifiers, name = self._function_name(begin, parameters)
        opened, after = self._past_head(self._code.partner[parameters] + 1)
        found.methods.append(name)
        if opened is not None:
            path = (*scope, *qualifiers, f"{name}()")
            self._unit.bodies.append(
                Body(scope, qualifiers, name, tuple(self._outside_classes(parameters, after, path)))
            )
        return after

    def _function_name(self, begin: int, parameters: int) -> tuple[Path, str]:
        at = parameters - 1
        for back in range(parameters - 1, begin - 1, -1):
            if self._tokens[back] == "operator":
                at = back
                break
        name = "".join(self._tokens[at:parameters])
        if self._tokens[at - 1] == "~" and at > begin:
            name, at = f"~{name}", at - 1
        qualifiers: list[str] = []
        while at - 2 >= begin and self._tokens[at - 1] == "::":
            at = self._before_angles(at - 2)
            qualifiers.insert(0, self._tokens[at])
        return tuple(qualifiers), name

    def _before_angles(self, at: int) -> int:
        """The position of the name before `<...>`, if that ends at `at`; otherwise `at`."""
        depth = 0
        while self._tokens[at] == ">" or depth:
            depth += (self._tokens[at] == ">") - (self._tokens[at] == "<")
            at -= 1
        return at

    def _past_head(self, at: int) -> tuple[int | None, int]:
        """The opening brace of the function's body, if there is one here, and the position after the function."""
        while at < len(self._tokens):
            token = self._tokens[at]
            if token == ";":
                return None, at + 1
            if token == "=":
                return None, self._past_statement(at, len(self._tokens))
            if token == "{":
                return at, self._code.partner[at] + 1
            if token == ":":
                at = self._past_initialisers(at)
            elif token in ("(", "["):
                at = self._code.partner[at] + 1
            elif token == "}":
                return None, at  # a macro that looks like a function
            else:
                at += 1
        return None, at

    def _past_initialisers(self, at: int) -> int:
        while self._tokens[at] in (":", ","):
            at += 1
            while self._tokens[at] not in ("(", "{"):
                at = (past_angles(self._tokens, at) or at + 1) if self._tokens[at] == "<" else at + 1
            at = self._code.partner[at] + 1
            if self._tokens[at] == "...":
                at += 1
        return at

    def _outside_classes(self, at: int, end: int, path: Path) -> Iterator[str]:
        """The tokens of a function without those of its local classes, which are measured separately."""
        while at < end:
            if (
                self._tokens[at] in _CLASS
                and self._tokens[at - 1] not in ("enum", "<", ",")
                and (head := self._class_head(at))
            ):
                at = self._class((*path, *head[0]), head[1])
            else:
                yield self._tokens[at]
                at += 1

    def _variables(self, begin: int, at: int, end: int, found: _Members) -> int:
        """`at` is behind the first name. The declared names are fields, unless the declaration is of another kind."""
        unnamed = self._tokens[at] == ":" and at == begin + 1  # `int : 3`
        names = ["" if unnamed else self._variable_name(begin, at)]
        while at < end and self._tokens[at] != ";":
            if self._tokens[at] == ",":
                first = at = at + 1
                while at < end and self._tokens[at] not in ("(", "[", "{", "=", ":", ",", ";"):
                    at += 1
                names.append(self._variable_name(first, at))
            elif self._tokens[at] in ("(", "[", "{"):
                at = self._code.partner[at] + 1
            elif self._tokens[at] == "<":
                at = past_angles(self._tokens, at) or at + 1
            else:
                at += 1
        if not {"static", "typedef"} & {*self._tokens[begin:at]}:
            found.fields += [name for name in names if name]
        return at + 1

    def _variable_name(self, begin: int, at: int) -> str:
        """The name before `at`; "" for an unnamed bit-field."""
        if self._tokens[at] == "(":
            at = self._code.partner[at]
        while self._tokens[at - 1] == "]":  # an attribute
            at = self._code.partner[at - 1]
        return self._tokens[at - 1] if at > begin else ""


def calls(body: Body, methods: frozenset[str]) -> set[str]:
    """The methods of its own class that a method calls: without a prefix, through `this` or `self`, or with the class's
    name.

    If a variable has a method's name, a call of that name without a prefix is not a call of the method.
    """
    tokens = ("", "", *body.tokens, "")
    itself = {*_ITSELF, ((*body.scope, *body.qualifiers)[-1], "::")}
    called: set[str] = set()
    alone: set[str] = set()
    variables: set[str] = set()
    for at in range(2, len(tokens) - 1):
        name = tokens[at]
        if name not in methods:
            continue
        by, before = tokens[at - 2 : at]
        behind = past_angles(tokens, at + 1) if tokens[at + 1] == "<" else at + 1
        is_call = behind is not None and tokens[behind] == "("
        if before in ("->", ".", "::"):
            if is_call and (by, before) in itself:
                called.add(name)
        elif not is_call:
            variables.add(name)
        elif before in _BEFORE_CALL or not is_name(before):
            alone.add(name)
    return called | (alone - variables)
