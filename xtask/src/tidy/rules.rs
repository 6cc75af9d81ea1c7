//! The kinds of rules for the source tree. The rules of the project are in `project`.

/// All rules, as tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Modules of a crate that must not name each other.
    pub separations: &'static [Separation],
    /// Names that are allowed only in some files.
    pub only_in: &'static [OnlyIn],
    /// Allowed dependencies of packages.
    pub dependencies: &'static [Dependencies],
    /// Parts of paths of files that cargo does not compile: tests pass them to the compiler.
    pub compiled_by_tests: &'static [&'static str],
    /// The maximum size of files.
    pub code_lines_max: Option<CodeLinesMax>,
    /// Folders whose files must start with `//!`.
    pub documented: &'static [&'static str],
    /// The package whose public surface is counted.
    pub surface: Option<&'static str>,
    /// Packages without the lint table of the workspace; `None` disables the check.
    pub without_lint_table: Option<&'static [&'static str]>,
}

/// No module of `from` names an item of another module of `to`.
#[derive(Debug)]
pub struct Separation {
    /// The name of the rule in reports.
    pub rule: &'static str,
    /// The package.
    pub package: &'static str,
    /// Top-level modules of its library that must not name those in `to`.
    pub from: &'static [&'static str],
    /// Top-level modules of its library that must not be named.
    pub to: &'static [&'static str],
}

/// Names that are allowed only in some files.
#[derive(Debug)]
pub struct OnlyIn {
    /// The name of the rule in reports.
    pub rule: &'static str,
    /// The names.
    pub words: &'static [Word],
    /// The checked files: beginnings of paths.
    pub within: &'static [&'static str],
    /// The files in which the names are allowed: beginnings of paths.
    pub allowed: &'static [&'static str],
    /// Whether test code is checked too.
    pub in_tests: bool,
}

/// A name to search for.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// Anything in another crate, by its name in code.
    Crate(&'static str),
    /// Anything in other crates whose name starts with this prefix.
    Crates(&'static str),
    /// A path in another crate with these segments, also if it is imported under another name.
    Path(&'static str),
    /// Any path, method or macro whose last name ends with this text.
    NameEnd(&'static str),
    /// A call of a macro.
    Macro(&'static str),
    /// An attribute.
    Attribute(&'static str),
}

impl Rules {
    /// Returns the names of all rules in the tables.
    pub fn names(&self) -> Vec<&'static str> {
        let separations = self.separations.iter().map(|rule| rule.rule);
        let only_in = self.only_in.iter().map(|rule| rule.rule);
        let dependencies = self.dependencies.iter().map(|rule| rule.rule);
        separations.chain(only_in).chain(dependencies).collect()
    }
}

/// The allowed dependencies of a package, without dev-dependencies.
#[derive(Debug)]
pub struct Dependencies {
    /// The name of the rule in reports.
    pub rule: &'static str,
    /// The package.
    pub package: &'static str,
    /// Only packages whose name starts with this prefix are checked; empty for all.
    pub among: &'static str,
    /// The allowed packages.
    pub allowed: &'static [&'static str],
}

/// The maximum number of lines of code in a file, without comments and test code.
#[derive(Debug, Clone, Copy)]
pub struct CodeLinesMax {
    /// The maximum.
    pub lines: usize,
    /// The checked files: beginnings of paths.
    pub within: &'static [&'static str],
    /// Ends of the paths of catalogues, which may be longer.
    pub exempt: &'static [&'static str],
}
