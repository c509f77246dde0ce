import unittest

import cpp_classes
from cpp_tokens import past_angles, tokens_of

_FILE = "base/file.cc"


def _members(text: str) -> tuple[list[str], list[str]]:
    """The fields and methods of a class with the body `text`."""
    unit = cpp_classes.parse(_FILE, f"class C {{ {text}\n}};")
    (found,) = (each for each in unit.classes if each.path == ("C",))
    return [*found.fields], [*found.methods]


def _calls(body: str, methods: str = "F G rank") -> set[str]:
    """The methods that `void C::F(int count)` calls."""
    bodies = cpp_classes.parse(_FILE, f"void C::F(int count) {{ {body} }}").bodies
    (found,) = (each for each in bodies if each.name == "F")
    return cpp_classes.calls(found, frozenset(methods.split()))


class TokensTest(unittest.TestCase):
    def test_comments_directives_and_literals_are_left_out(self) -> None:
        for text, expected in (
            ("a // b\nc", "a c"),
            ("a // b \\\n b\nc", "a c"),
            ("a /* b\n b */ c", "a c"),
            ("a\n  # define X { \\\n }\nb", "a b"),
            ("a # b", "a # b"),
            ('f("{ \\" //")', 'f ( "" )'),
            ("'{' '\\'' u8'}'", '"" "" ""'),
            ('R"({ " })" u8R"x(})" )x"', '"" ""'),
            ("1'000'000 0x1p-3 1.5e+3f .5", "1'000'000 0x1p-3 1.5e+3f .5"),
            ("a->b::c >> d <=> e", "a -> b :: c > > d <=> e"),
        ):
            with self.subTest(text=text):
                self.assertEqual(" ".join(tokens_of(text)), expected)

    def test_angles_that_compare_have_no_end(self) -> None:
        for text, behind in (
            ("<a>(", "("),
            ("<a<b>, c>> d", ">"),
            ("<void(int < 3)> d", "d"),
            ("<a && b;", None),
            ("<a) > b", None),
        ):
            with self.subTest(text=text):
                tokens = tokens_of(text)
                at = past_angles(tokens, 0)
                self.assertEqual(None if at is None else tokens[at], behind)

    def test_brackets_without_a_partner_are_named_with_their_file(self) -> None:
        for text in ("class C {", "int f(]", "}"):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, _FILE):
                cpp_classes.parse(_FILE, text)


class MembersTest(unittest.TestCase):
    def test_fields(self) -> None:
        for text, fields in (
            ("int a; int* b; const T& c;", "a b c"),
            ("double a, b = 1, *c;", "a b c"),
            ("int a = 0; T b{1, 2}; T c = {1, 2}; T d{{.x = f()}}, e;", "a b c d e"),
            ("std::map<int, T<U>> a; bool b = c < d; bool e = f > g, h;", "a b e h"),
            ("std::function<void(int x)> a; std::function<int()> b = [] { return 1; };", "a b"),
            ("void (*a)(int); int (&b)[3]; int (T::*c)() = nullptr;", "a b c"),
            ("int a : 3, b : 2, : 0; int : 0; bool c : 1 = true;", "a b c"),
            ("int a[3]; char b[2][4] = {};", "a b"),
            ("mutable T a; volatile int b; struct tm c{}; struct stat d;", "a b c d"),
            ("alignas(8) int a; [[maybe_unused]] int b; decltype(f()) c; int d [[maybe_unused]];", "a b c d"),
            ("static int a; static constexpr T b{}; inline static int c = 1;", ""),
            ("public: int a; private: T b; protected: T c;", "a b c"),
            ("using A = T; typedef int B; friend class D; friend T; class E; struct F; enum G : int;", ""),
            ("using T::f; template <typename U> using A = B<U>;", ""),
            ("static_assert(sizeof(int) == 4); ; int a;", "a"),
            ("enum { kA, kB = 2 }; enum class E : int { kC }; enum D { kD } a;", "a"),
            ("struct S { int x; }; struct { int y; } a; struct R : S { int z; } b, c;", "a b c"),
            ("\n#if X\n int a;\n#else\n long b;\n#endif", "a b"),
        ):
            with self.subTest(text=text):
                self.assertEqual(_members(text), (fields.split(), []))

    def test_methods(self) -> None:
        for text, methods in (
            ("C(); explicit C(int a); ~C(); explicit(true) C(T);", "C C ~C C"),
            ("C(const C&) = delete; C& operator=(C&&) = default; virtual void f() = 0;", "C operator= f"),
            ("C() : a_(1), b_{g({2})}, T<int>(3), U(u)... {} void f();", "C f"),
            ("C() try : a_(1) {} void f();", "C f"),
            ("void f(); void f(int); int f(T) const;", "f f f"),
            ("static int f(); inline int g() { return 1; } constexpr bool h() const noexcept { return {}; }", "f g h"),
            ("void f() && noexcept(noexcept(T{})) final; void g() const override {}; void h() {}", "f g h"),
            ("auto f() -> std::map<int, int>; auto g() const -> decltype(a()) { return {}; }", "f g"),
            (
                "T operator()(int) const; T& operator[](int); bool operator<(T) const;",
                "operator() operator[] operator<",
            ),
            (
                "operator bool() const; explicit operator int(); void* operator new(size_t);",
                "operatorbool operatorint operatornew",
            ),
            (
                "auto operator<=>(const C&) const = default; T operator<<(int); T operator->();",
                "operator<=> operator<< operator->",
            ),
            ("template <typename T, int N = (1 > 0)> void f(T); template <class T> requires (N<T>) T g() {}", "f g"),
            ("[[nodiscard]] int f(); __attribute__((cold)) void g(); std::function<void()> h();", "f g h"),
            ("void f(std::function<void()> a = [] {}, T b = {}); T* g(int x[3]); T& h();", "f g h"),
            ("friend bool operator==(C, C) { return true; } friend void f(); void g();", "g"),
        ):
            with self.subTest(text=text):
                self.assertEqual(_members(text), ([], methods.split()))

    def test_classes_are_named_by_where_they_stand(self) -> None:
        for text, path in (
            ("class C {};", "C"),
            ("struct C final : public A<B>, virtual D {};", "C"),
            ("namespace a::b { inline namespace c { struct D {}; } }", "a b c D"),
            ("namespace { union C {}; }", f"{_FILE} C"),
            ('extern "C" { typedef struct c { int a; } c; }', "c"),
            ("class A::B final : C {};", "A B"),
            ("template <class T> class C {};", "C"),
            ("template <> struct std::hash<A::B> { int f(); };", "std hash<A::B>"),
            ("struct [[nodiscard]] alignas(8) C {};", "C"),
            ("template <typename T> T A<T>::f() { struct C {}; }", "A f() C"),
            ("namespace a = b::c; int x = 1; struct C {};", "C"),
            ("enum class E { kA }; enum class F; struct D; C f(struct D d); struct C {};", "C"),
        ):
            with self.subTest(text=text):
                (found,) = cpp_classes.parse(_FILE, text).classes
                self.assertEqual(" ".join(found.path), path)

    def test_a_class_in_a_class_is_measured_as_its_own(self) -> None:
        found = cpp_classes.parse(_FILE, "class A { struct B { int x, y; void f() { struct D { int z; }; } }; B b; };")
        self.assertEqual(
            {each.path: (each.fields, each.methods) for each in found.classes},
            {
                ("A",): (("b",), ()),
                ("A", "B"): (("x", "y"), ("f",)),
                ("A", "B", "f()", "D"): (("z",), ()),
            },
        )


class BodiesTest(unittest.TestCase):
    def test_a_body_names_its_scope_and_class(self) -> None:
        for text, whose in (
            ("namespace n { T<A::B> C::D::f(int) const { } }", ("n", "C::D", "f")),
            ("template <typename T> const A<T>& C<T, U<T>>::f() {}", ("", "C", "f")),
            ("C::C(int a) : a_(a), b_{} { }", ("", "C", "C")),
            ("C::~C() = default; C::~C() {}", ("", "C", "~C")),
            ("bool C::operator==(const C&) const {}", ("", "C", "operator==")),
            ("void f(); class C { void f(); void g() {} };", ("C", "", "g")),
            ('extern "C" int f(void) { return 1; }', ("", "", "f")),
        ):
            with self.subTest(text=text):
                (body,) = cpp_classes.parse(_FILE, text).bodies
                self.assertEqual(("::".join(body.scope), "::".join(body.qualifiers), body.name), whose)

    def test_calls(self) -> None:
        for body, called in (
            ("G(); if (!F(rank())) return G();", "F G rank"),
            ("return G();", "G"),
            ("this->G(); self->F();", "F G"),
            ("C::G();", "G"),
            ("other.G(); other->F(); T::G(); self.other->F();", ""),
            ("Later([this] { G(); });", "G"),
            ("std::visit([&](const auto& m) { F(m); }, message);", "F"),
            ("auto task = G<int>(1); bool less = F < 3;", "G"),
            ("T G(1); new T();", ""),
            ("auto rank = 1; return rank;", ""),
            ("const auto G = [] {}; G(); F();", "F"),
            ("for (int rank : ranks) if (rank != this->rank()) F();", "F rank"),
            ("x = {.rank = rank()};", "rank"),
            ("struct L { void H() { G(); } }; F();", "F"),
            ("co_await G(); else F();", "F G"),
            ('log("G()"); // F()', ""),
        ):
            with self.subTest(body=body):
                self.assertEqual(_calls(body + "\n"), {*called.split()})

    def test_initialisers_call_and_parameters_hide(self) -> None:
        (body,) = cpp_classes.parse(_FILE, "C::C(Task done) : a_(F()) { done(); G(); }").bodies
        self.assertEqual(cpp_classes.calls(body, frozenset({"F", "G", "done"})), {"F", "G"})


if __name__ == "__main__":
    unittest.main()
