"""Objects: which keys may follow which, and what each one holds.

Keys come in a fixed order, each once at most: named ones as ``properties`` lists them (a schema's own before those of
``$ref``, ``allOf``, ``anyOf`` and ``oneOf``), then required ones that no schema names, then all others. A union of
objects is read as one: as long as its branches agree on what comes next, one reading is alive, and a key whose value is
a literal (a union's tag) decides between branches together with its text.

With ``open_objects``, where the text comes from elsewhere, keys come in any order (but many required ones in theirs),
and an optional key that is repeated is noticed no more than an unnamed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ..gbnf import LONGEST, NEVER, Alt, Branch, Expr, Lit, Ref, Seq, Trie, agreement, alt, factor, parted, repeat, seq
from .document import Site
from .forms import Form, Goal
from .maker import Maker
from .members import Members, State
from .shared import new_rule
from .values import quote

_MOST_EDGES, _MOST_OPEN_EDGES = 4000, 250
"""Branches that would need more are read one by one: exact too, but slower to sample. That does not matter in an open
object, which no turn holds, so there the compiler's own time sets the bound."""

_Place: TypeAlias = tuple[int, State]
_Places: TypeAlias = frozenset[_Place]


class _Edge(NamedTuple):
    """A key that may come next, its value (a goal, or one literal), and where it leads."""

    name: str
    value: Goal
    literal: Branch | None
    places: _Places


def objects(forms: list[Form], site: Site, maker: Maker) -> Expr:
    """The objects that any of the forms admits."""
    branches = [Members(form, site, maker) for form in forms]
    branches = [branch for branch in branches if not branch.impossible]
    if not branches:
        return NEVER
    if len(branches) > 1:
        machine = _Machine(branches, maker)
        if machine.fits():
            return machine.write()
    return alt(_apart(branch, maker) for branch in branches)


def _apart(branch: Members, maker: Maker) -> Expr:
    """One branch, read by itself."""
    if not branch.keys and not branch.dependents:
        return _map(branch, maker)
    if branch.open and not branch.counts and not branch.dependents:
        return _freely(branch, maker)
    machine = _Machine([branch], maker)
    if not machine.fits():
        branch.ignore_counts()
        machine = _Machine([branch], maker)
    return machine.write()


def _map(branch: Members, maker: Maker) -> Expr:
    """An object of unnamed keys only."""
    low, high = branch.least, branch.most
    if high is not None and low > high:
        return NEVER
    if high == 0 or not branch.extras:
        return Lit("{}") if low == 0 else NEVER
    for bound, keyword in ((low, "minProperties"), ((high or 0) - low, "maxProperties")):
        if bound > LONGEST:
            maker.report(branch.site, keyword, f"no more than {LONGEST} keys are counted")
            low, high = min(low, LONGEST), None
    pair = maker.define(alt(seq(Lit('"'), key, Lit(": "), maker.value(goal)) for key, goal in branch.extras))
    following = maker.define(seq(Lit(", "), pair))
    most = None if high is None else high - 1
    some = seq(pair, repeat(following, max(0, low - 1), most, maker.define), Lit("}"))
    return seq(Lit("{"), some if low else Alt((Lit("}"), some)))


def _freely(branch: Members, maker: Maker) -> Expr:
    """One open object whose keys nobody counts: a required key leads on to a state without it, all others lead back."""
    required = [
        (Lit(branch.texts[index]), maker.value(branch.keys[index].goal, branch.keys[index].name))
        for index in branch.required
    ]
    complete = (1 << len(required)) - 1
    loop = _loop(branch, maker)
    refs: dict[int, Ref] = {}
    todo: list[int] = []

    def following(came: int) -> Ref:
        if came not in refs:
            refs[came] = maker.reserve()
            todo.append(came)
        return refs[came]

    def keys(came: int) -> list[Expr]:
        missing = [bit for bit in range(len(required)) if not came >> bit & 1]
        if not branch.in_any_order:
            del missing[1:]
        found: list[Expr] = [Seq((*required[bit], following(came | 1 << bit))) for bit in missing]
        if loop is not None:
            found.append(Seq((loop, following(came))))
        return found

    body = _key_or_end(keys(0), '{"', None if complete else "{}")
    while todo:
        came = todo.pop()
        maker.put(refs[came], _key_or_end(keys(came), ', "', "}" if came == complete else None))
    return body


def _loop(branch: Members, maker: Maker) -> Ref | None:
    """One key of an open branch that nobody counts or waits for, with its value."""
    pairs: list[Branch] = []
    for index, key in enumerate(branch.keys):
        if not key.required and key.name not in branch.watched:
            pairs.append((branch.texts[index], maker.value(key.goal, key.name)))
    options = parted(pairs, maker)
    options += [seq(key, Lit(": "), maker.value(goal)) for key, goal in branch.extras]
    if not options:
        return None
    return new_rule(options[0] if len(options) == 1 else Alt(tuple(options)), maker)


class _Machine:
    """Reads the branches side by side, from key to key."""

    def __init__(self, branches: list[Members], maker: Maker) -> None:
        self.branches = branches
        self.maker = maker
        self.refs: dict[_Places, Ref] = {}
        self.lines: dict[tuple[int, frozenset[str], int], list[Trie]] = {}
        self.tails: dict[tuple[str, Goal, Ref], Ref] = {}
        self.loops: dict[int, Ref | None] = {}
        self.todo: list[_Places] = []
        self.known_edges: dict[_Places, list[_Edge]] = {}
        self.start: _Places = frozenset((number, State()) for number in range(len(branches)))

    @cached_property
    def cuts(self) -> dict[str, int]:
        """For each key, how many characters of its JSON text tell it from all the others."""
        return _cuts({key.name for branch in self.branches for key in branch.keys})

    def fits(self) -> bool:
        """Whether the keys of all states are few enough to write down."""
        if not any(branch.counts or branch.dependents for branch in self.branches) and len(self.branches) == 1:
            return True
        left = _MOST_OPEN_EDGES if self.maker.open_objects and len(self.branches) > 1 else _MOST_EDGES
        seen = {self.start}
        todo = [self.start]
        while todo:
            edges = self.edges(todo.pop())
            left -= len(edges)
            if left < 0:
                return False
            for edge in edges:
                if edge.places not in seen:
                    seen.add(edge.places)
                    todo.append(edge.places)
        return True

    def write(self) -> Expr:
        body = self.body(self.start, '{"', "{}")
        while self.todo:
            places = self.todo.pop()
            self.maker.put(self.refs[places], self.body(places, ', "', "}"))
        return body

    def next(self, places: _Places) -> Ref:
        """The rule of what follows a key's value."""
        ref = self.refs.get(places)
        if ref is None:
            ref = self.refs[places] = self.maker.reserve()
            self.todo.append(places)
        return ref

    def body(self, places: _Places, lead: str, end: str) -> Expr:
        """What may stand in this state: a key, or the object's end."""
        ends = any(self.branches[number].may_close(state) for number, state in places)
        return _key_or_end(self.keys(places), lead, end if ends else None)

    def keys(self, places: _Places) -> list[Expr]:
        """What may stand behind a key's opening quote."""
        if len(places) == 1:
            ((number, state),) = places
            if self.branches[number].open:
                return self.open_keys(number, state)
            options = self.line(number, state).options() if self.branches[number].has_room(state) else []
        else:
            options = [self.factored(self.edges(places))]
        for number, state in _in_order(places):
            if self.branches[number].takes_unnamed(state):
                options += self.unnamed(number, state)
        return [option for option in options if option != NEVER]

    def line(self, number: int, state: State) -> Trie:
        """The named keys that may come next in one branch, where they come in order.

        Those from one key on are that key, and, unless it is required, those from the next key on.
        """
        branch = self.branches[number]
        at = (number, state.seen, state.number)
        line = self.lines.setdefault(at, [Trie(self.maker)])
        while (index := len(branch.keys) - len(line)) >= state.at:
            trie = Trie(self.maker) if branch.keys[index].required else line[-1]
            once = index == 0 or branch.keys[index - 1].required
            line.append(trie.with_branch(*self.step(number, index, state, once=once)))
        return line[len(branch.keys) - state.at]

    def open_keys(self, number: int, state: State) -> list[Expr]:
        """The keys that may come next in one open branch: those that change nothing are the same in every state."""
        branch = self.branches[number]
        loops = branch.has_room(state) and branch.after(state, None) == state
        steps: list[Branch] = []
        for index in branch.reach(state):
            key = branch.keys[index]
            if not loops or key.required or key.name in branch.watched:
                steps.append(self.step(number, index, state, once=True))
        options = parted(steps, self.maker)
        if loops:
            if loop := self.loop(number):
                options.append(seq(loop, self.next(frozenset([(number, state)]))))
        elif branch.has_room(state):
            options += self.unnamed(number, state)
        return options

    def loop(self, number: int) -> Ref | None:
        if number not in self.loops:
            self.loops[number] = _loop(self.branches[number], self.maker)
        return self.loops[number]

    def unnamed(self, number: int, state: State) -> list[Expr]:
        """The keys that no schema names."""
        branch = self.branches[number]
        if not branch.extras:
            return []
        follow = self.next(frozenset([(number, branch.after(state, None))]))
        return [seq(key, Lit(": "), self.maker.value(goal), follow) for key, goal in branch.extras]

    def step(self, number: int, index: int, state: State, *, once: bool) -> Branch:
        """A named key of one branch, with its value and what follows; unless it is only named once, as a rule."""
        branch = self.branches[number]
        key = branch.keys[index]
        following = self.next(frozenset([(number, branch.after(state, index))]))
        text = branch.texts[index]
        if once:
            return text, seq(self.maker.value(key.goal, key.name), following)
        return self.tailed(key.name, text, key.goal, following)

    def tailed(self, name: str, text: str, goal: Goal, following: Ref) -> Branch:
        """A key as far as it takes to tell it from all others, and a rule for the rest."""
        cut = self.cuts[name]
        tail = self.tails.get((name, goal, following))
        if tail is None:
            tail = self.tails[name, goal, following] = self.maker.reserve()
            self.maker.put(tail, seq(Lit(text[cut:]), self.maker.value(goal, name), following))
        return text[:cut], tail

    def edges(self, places: _Places) -> list[_Edge]:
        """The named keys that may come next, with their values and where they lead.

        Branches that hold the key to the same value go on together. If they differ, and all values are literals, each
        literal goes on with the branches that admit it.
        """
        known = self.known_edges.get(places)
        if known is not None:
            return known
        by_name: dict[str, list[tuple[Goal, _Place]]] = {}
        for number, state in _in_order(places):
            branch = self.branches[number]
            for index in branch.reach(state):
                key = branch.keys[index]
                by_name.setdefault(key.name, []).append((key.goal, (number, branch.after(state, index))))
        found: list[_Edge] = []
        for name, entries in by_name.items():
            by_goal: dict[Goal, list[_Place]] = {}
            for goal, place in entries:
                by_goal.setdefault(goal, []).append(place)
            literals = self.literals(by_goal) if len(by_goal) > 1 else None
            if literals is None:
                found.extend(_Edge(name, goal, None, frozenset(after)) for goal, after in by_goal.items())
            else:
                found.extend(_Edge(name, (), text, frozenset(after)) for text, after in literals.items())
        self.known_edges[places] = found
        return found

    def literals(self, by_goal: dict[Goal, list[_Place]]) -> dict[Branch, list[_Place]] | None:
        """Each literal with the places that it leads to; None if some value is no literal."""
        found: dict[Branch, list[_Place]] = {}
        for goal, after in by_goal.items():
            spelled = self.maker.literals(goal)
            if spelled is None:
                return None
            for branch in spelled:
                found.setdefault(branch, []).extend(after)
        return found

    def factored(self, edges: list[_Edge]) -> Expr:
        branches: list[Branch] = []
        for edge in edges:
            text = quote(edge.name)[1:] + ": "
            following = self.next(edge.places)
            if edge.literal is not None:
                opening, rest = edge.literal
                branches.append((text + opening, seq(rest, following)))
            elif len(edges) == 1:
                branches.append((text, seq(self.maker.value(edge.value, edge.name), following)))
            else:
                branches.append(self.tailed(edge.name, text, edge.value, following))
        return factor(branches, self.maker.define) if branches else NEVER


def _key_or_end(keys: list[Expr], lead: str, end: str | None) -> Expr:
    """One of the keys, behind the text that leads to it; or the object's end, if it may end."""
    if not keys:
        return NEVER if end is None else Lit(end)
    more = seq(Lit(lead), keys[0] if len(keys) == 1 else Alt(tuple(keys)))
    return more if end is None else Alt((Lit(end), more))


def _in_order(places: _Places) -> Iterable[_Place]:
    return places if len(places) == 1 else sorted(places, key=lambda place: (place[0], place[1].at))


def _cuts(names: set[str]) -> dict[str, int]:
    texts = sorted([(quote(name)[1:], name) for name in names])
    shared = [agreement(one[0], other[0], 0) for one, other in pairwise(texts)]
    return {
        name: max(before, after) + 1 for (_, name), before, after in zip(texts, [0, *shared], [*shared, 0], strict=True)
    }
