"""The grammar language: factoring, counting and pruning keep the language what it was."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tacid_infer.gbnf import EMPTY, Alt, Chars, Expr, Lit, Ref, Rules, check, factor, prune, repeat, seq, write_rules

from ..conftest import admits
from ..gbnf_reader import Grammar


class Maker:
    def __init__(self) -> None:
        self.rules: Rules = {}

    def define(self, expr: Expr) -> Ref:
        ref = Ref(f"r{len(self.rules)}")
        self.rules[ref.name] = expr
        return ref

    def grammar(self, root: Expr) -> str:
        rules = {"root": root, **self.rules}
        check(rules, ["root"])
        return write_rules(rules)


@settings(max_examples=200, deadline=None)
@given(words=st.sets(st.text('ab"\\é\n', max_size=6), min_size=1, max_size=12), other=st.text('ab"\\é\n', max_size=7))
def test_factoring_keeps_the_language(words: set[str], other: str) -> None:
    maker = Maker()
    grammar = Grammar(maker.grammar(seq(Lit("<"), factor([(word, EMPTY) for word in words], maker.define), Lit(">"))))
    for word in words:
        assert grammar.admits(f"<{word}>")
    assert grammar.admits(f"<{other}>") == (other in words)


def test_factored_names_share_every_beginning() -> None:
    maker = Maker()
    root = factor([(f"service-{number:04}", EMPTY) for number in range(4000)], maker.define)
    assert maker.grammar(root) == 'root ::= "service-" [0-3] [0-9] [0-9] [0-9]\n'


def test_names_of_any_length_and_number() -> None:
    maker = Maker()
    words = ["a" * length for length in range(1, 3000)]
    grammar = maker.grammar(factor([(word, EMPTY) for word in words], maker.define))
    assert len(grammar) < 100_000


def test_counting_beyond_one_repetition() -> None:
    for low, high in ((0, 5), (3, 3), (0, 1999), (0, 2000), (0, 5000), (2500, 2600), (1999, 4001)):
        maker = Maker()
        root = seq(repeat(Chars(((97, 97),)), low, high, maker.define), Lit("."))
        grammar = maker.grammar(root)
        for count in {0, 1, low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1}:
            if count >= 0:
                assert Grammar(grammar).admits("a" * count + ".") == (low <= count <= high), (low, high, count)
    assert admits(grammar, "a" * 3000 + ".")


def test_rules_that_wait_for_others_again_and_again_are_looked_at_as_often_as_they_refer_to_others() -> None:
    count = 40
    parts = [Ref(f"part{number}") for number in range(count)]
    rules: Rules = {"root": Alt((seq(Lit("a"), *parts), seq(Lit("b"), *parts)))}
    rules |= {f"end{number}": Lit("z") for number in range(count)}
    rules |= {f"part{number}": Ref(f"end{number}") for number in range(count)}
    for backwards in (rules, dict(reversed(rules.items()))):
        assert prune(backwards, ["root"]).keys() == rules.keys()


def test_pruning_removes_what_can_never_end() -> None:
    rules: Rules = {
        "root": Alt((Lit("a"), Ref("never"), seq(Lit("b"), Ref("loop")))),
        "never": Alt(()),
        "loop": seq(Lit("x"), Ref("loop")),
    }
    assert prune(rules, ["root"]) == {"root": Lit("a")}
    assert prune({"root": Ref("never"), "never": Alt(())}, ["root"]) == {}
