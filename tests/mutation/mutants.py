"""Small changes of a module's code, each of which some test ought to notice.

Only what functions do is changed: not constants of modules and classes, not defaults, annotations, docstrings or
assertions, and no text, nor what a refusal is told with: sentences are for people, and are tested as such.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
NEGATED_ALREADY = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change. number: its place among those of its module. lines: those of the code that is other."""

    module: str
    number: int
    function: str
    lines: range
    was: str
    now: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.module}.py:{self.lines.start} {self.change}"

    @property
    def change(self) -> str:
        """What is changed, wherever it stands by now."""
        return f"{self.function}: {self.was} -> {self.now}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All of a module's mutants, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = 0
    for function, name in _functions(tree, ""):
        free = _code_of(compile(tree, str(path), "exec", dont_inherit=True), name, function).co_freevars
        for parent, field, index, node in _places(function):
            for other in _alternatives(node):
                ast.copy_location(other, node)
                ast.fix_missing_locations(other)
                _put(parent, field, index, other)
                code = _code_of(compile(tree, str(path), "exec", dont_inherit=True), name, function)
                _put(parent, field, index, node)
                if code.co_freevars != free:
                    continue  # without its only call of super() it could not take the place of the function
                yield Mutant(
                    module=path.stem,
                    number=number,
                    function=name,
                    lines=_lines(node),
                    was=_shown(node),
                    now=_shown(other),
                    code=code,
                )
                number += 1


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[FunctionNode, str]]:
    """Those that are inside no other function, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FunctionNode):
            yield child, f"{outer}{child.name}"
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node below that may be changed, with where it hangs."""
    for field, value in ast.iter_fields(node):
        if _is_told_to_people_or_fixed(node, field):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST) and not isinstance(child, ast.Assert | ast.JoinedStr):
                yield node, field, index, child
                yield from _places(child)


def _is_told_to_people_or_fixed(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Raise):
        return True
    return field in {"annotation", "returns", "decorator_list", "args", "defaults", "kw_defaults"} and not isinstance(
        node, ast.Call
    )


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    yield from _other_operators(node)
    yield from _other_values(node)
    yield from _other_conditions(node)
    yield from _other_statements(node)


def _other_operators(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                ops = [*node.ops[:index], COMPARISONS[type(operator)](), *node.ops[index + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp() if type(node.op) in OPERATIONS:
            yield ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in OPERATIONS:
            yield ast.AugAssign(node.target, OPERATIONS[type(node.op)](), node.value)
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand


def _other_values(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Name(ctx=ast.Load()) if node.id in NAMES:
            yield ast.Name(NAMES[node.id], ast.Load())


def _other_conditions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and _can_be_negated(node.test):
        negated = copy.copy(node)
        negated.test = ast.UnaryOp(ast.Not(), node.test)
        yield negated
    if isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            for ifs in [], [ast.UnaryOp(ast.Not(), test)] if _can_be_negated(test) else None:
                if ifs is not None:
                    changed = copy.copy(node)
                    changed.ifs = [*node.ifs[:index], *ifs, *node.ifs[index + 1 :]]
                    yield changed


def _other_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Raise() | ast.Delete() | ast.Expr(value=ast.Call() | ast.YieldFrom()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def _can_be_negated(test: ast.expr) -> bool:
    """Unless another change of the same place comes to the same."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return not isinstance(test.ops[0], NEGATED_ALREADY)
    return not isinstance(test, ast.UnaryOp)


def _code_of(code: CodeType, name: str, function: FunctionNode) -> CodeType:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == name and _first_line(function) == each.co_firstlineno:
                return each
            if name.startswith(f"{each.co_qualname}."):
                return _code_of(each, name, function)
    raise LookupError(f"no code of {name}")


def _first_line(function: FunctionNode) -> int:
    return min(function.lineno, *(each.lineno for each in function.decorator_list), function.lineno)


def _lines(node: ast.AST) -> range:
    """Of a condition with what hangs on it, those of the condition."""
    first = last = node
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        first = last = node.test
    if isinstance(node, ast.comprehension):
        first, last = node.target, node.ifs[-1]
    assert isinstance(first, ast.expr | ast.stmt)
    assert isinstance(last, ast.expr | ast.stmt)
    return range(first.lineno, (last.end_lineno or last.lineno) + 1)


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        node = node.test
    return " ".join(ast.unparse(node).split())[:100] if not isinstance(node, ast.comprehension) else _ifs(node)


def _ifs(node: ast.comprehension) -> str:
    return f"for {ast.unparse(node.target)} {' '.join(f'if {ast.unparse(test)}' for test in node.ifs)}"[:100]
