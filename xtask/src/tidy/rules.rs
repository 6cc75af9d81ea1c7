//! The kinds of rules that the source tree is checked against. The project's own are in `project`.

/// Everything that is checked, as tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Modules of one crate that do not name each other.
    pub apart: &'static [Apart],
    /// Names that only some files hold.
    pub only_in: &'static [OnlyIn],
    /// What packages depend on.
    pub dependencies: &'static [Dependencies],
    /// Parts of paths whose files cargo does not compile: tests hand them to the compiler.
    pub compiled_by_tests: &'static [&'static str],
    /// The most lines of code that a file may hold.
    pub code_lines_max: Option<CodeLinesMax>,
    /// Folders whose files open with `//!`.
    pub documented: &'static [&'static str],
    /// The package whose public surface is counted.
    pub surface: Option<&'static str>,
    /// Whether each package takes the lint table of the workspace; these do not.
    pub without_lint_table: Option<&'static [&'static str]>,
}

/// No module of `from` names an item of another module of `to`.
#[derive(Debug)]
pub struct Apart {
    /// What a fault is reported as.
    pub rule: &'static str,
    /// The package.
    pub package: &'static str,
    /// Top-level modules of its library.
    pub from: &'static [&'static str],
    /// Top-level modules of its library.
    pub to: &'static [&'static str],
}

/// Only some files hold these names.
#[derive(Debug)]
pub struct OnlyIn {
    /// What a fault is reported as.
    pub rule: &'static str,
    /// The names.
    pub words: &'static [Word],
    /// Where they are looked for: beginnings of paths.
    pub within: &'static [&'static str],
    /// Where they may stand: beginnings of paths.
    pub allowed: &'static [&'static str],
    /// Whether test code is checked as well.
    pub in_tests: bool,
}

/// What is looked for in code.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// Anything of another crate, by its name in code.
    Crate(&'static str),
    /// Anything of other crates whose name begins so.
    Crates(&'static str),
    /// A path of another crate with these segments, also where it is imported under another name.
    Path(&'static str),
    /// Any path, method or macro whose last name ends so.
    NameEnd(&'static str),
    /// A call of a macro.
    Macro(&'static str),
    /// An attribute.
    Attribute(&'static str),
}

impl Rules {
    /// The names of all rules in the tables.
    pub fn names(&self) -> Vec<&'static str> {
        let apart = self.apart.iter().map(|rule| rule.rule);
        let only_in = self.only_in.iter().map(|rule| rule.rule);
        let dependencies = self.dependencies.iter().map(|rule| rule.rule);
        apart.chain(only_in).chain(dependencies).collect()
    }
}

/// What a package may depend on, apart from tests.
#[derive(Debug)]
pub struct Dependencies {
    /// What a fault is reported as.
    pub rule: &'static str,
    /// The package.
    pub package: &'static str,
    /// Only packages whose name begins so are checked; all for the empty text.
    pub among: &'static str,
    /// Packages it may depend on.
    pub allowed: &'static [&'static str],
}

/// The most lines of code, without comments and test code, that a file may hold.
#[derive(Debug, Clone, Copy)]
pub struct CodeLinesMax {
    /// The number.
    pub lines: usize,
    /// Where files are checked: beginnings of paths.
    pub within: &'static [&'static str],
    /// Ends of the paths of catalogues, which may be long.
    pub exempt: &'static [&'static str],
}
