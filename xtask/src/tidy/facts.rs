//! The facts about a parsed file: the modules it declares, the names it defines and imports, and the paths it
//! references, with their lines.

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    /// Lines of the file.
    pub(crate) lines: usize,
    /// Lines outside of test code that contain more than a comment.
    pub(crate) code_lines: usize,
    /// Whether the file starts with `//!`.
    pub(crate) has_docs: bool,
    /// Whether the whole file is test code (`#![cfg(test)]`).
    pub(crate) is_test: bool,
    /// The contents of the module of the file.
    pub(crate) body: Body,
}

/// The contents of one module.
#[derive(Debug)]
pub(crate) struct Body {
    /// The modules declared in it.
    pub(crate) modules: Vec<ModuleDeclaration>,
    /// The scope of the module first, then those of blocks with items.
    pub(crate) scopes: Vec<Scope>,
    /// Functions of `impl Type { .. }`.
    pub(crate) inherent: Vec<Inherent>,
    /// All references to paths.
    pub(crate) references: Vec<Reference>,
    /// Names of test functions, with their lines.
    pub(crate) tests: Vec<(String, usize)>,
}

impl Default for Body {
    fn default() -> Self {
        Self {
            modules: Vec::new(),
            scopes: vec![Scope::default()],
            inherent: Vec::new(),
            references: Vec::new(),
            tests: Vec::new(),
        }
    }
}

/// `mod name;` or `mod name { .. }`.
#[derive(Debug)]
pub(crate) struct ModuleDeclaration {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_public: bool,
    pub(crate) is_test: bool,
    /// The value of `#[path = ".."]`.
    pub(crate) path: Option<String>,
    /// The contents, unless they are in another file.
    pub(crate) inline: Option<Body>,
}

/// The names in a module or block.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// The enclosing scope; `None` for the module's own.
    pub(crate) parent: Option<usize>,
    pub(crate) names: Vec<Name>,
    pub(crate) imports: Vec<Import>,
}

/// A name that an item defines.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) is_public: bool,
    pub(crate) is_test: bool,
}

/// A namespace of Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Type,
    Value,
    Macro,
    /// Types and values, for example a tuple struct.
    Both,
}

/// A name that `use` brings into scope.
#[derive(Debug)]
pub(crate) struct Import {
    /// `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) path: String,
    pub(crate) is_public: bool,
    pub(crate) is_test: bool,
}

/// The functions of an inherent `impl` block.
#[derive(Debug)]
pub(crate) struct Inherent {
    pub(crate) scope: usize,
    /// The type, as written.
    pub(crate) path: String,
    pub(crate) functions: Vec<String>,
    pub(crate) is_test: bool,
}

/// A path as written. The same path in the same scope is stored once, with all its lines.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) scope: usize,
    pub(crate) kind: Kind,
    pub(crate) path: String,
    pub(crate) is_test: bool,
    pub(crate) lines: Vec<usize>,
}

/// The syntactic position of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A path of `use`.
    Use,
    Type,
    Value,
    /// A pattern, a struct literal, or tokens in a macro.
    Any,
    Macro,
    /// `.name()`
    Method,
    /// `self.name()`, stored as the path of the type of `self` and the name.
    OwnMethod,
    Attribute,
}
