//! Resolves paths to the module that defines the item, also through imports, re-exports, renames and globs.
//!
//! Names that macros generate are unknown; a path to one resolves to the module it is looked up in.

use std::collections::HashMap;

use super::facts::{Kind, Scope, Space};
use super::tree::Crate;

/// What a path resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A module of the crate.
    Module(usize),
    /// An item of a module; `rest` are the segments after it, for example the function of a type.
    Item {
        module: usize,
        name: String,
        rest: Vec<String>,
    },
    /// A name that a module of the crate does not define.
    Unknown { module: usize, name: String },
    /// An item of another crate, with its full path.
    External(String),
}

/// The names of one crate.
pub(crate) struct Names<'c> {
    tree: &'c Crate<'c>,
    modules: Vec<HashMap<&'c str, Vec<Entry>>>,
    globs: Vec<Vec<usize>>,
    /// Modules that define a macro, by its name.
    macros: HashMap<&'c str, Vec<usize>>,
    /// Modules with functions of types, by the type's module, its name and the function's name.
    functions: HashMap<(usize, String, String), Vec<usize>>,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Item(Space, bool),
    Child(usize),
    /// The index of the import in the module's scope.
    Import(usize),
}

/// The context of a lookup.
#[derive(Clone, Copy)]
struct From {
    module: usize,
    scope: usize,
    space: Space,
    is_test: bool,
    /// Whether it is a macro call: found by name alone, like `macro_rules!`.
    is_call: bool,
}

/// Imports that are being resolved, to detect cycles.
type Following = Vec<(usize, usize, usize)>;

impl<'c> Names<'c> {
    pub(crate) fn new(tree: &'c Crate<'c>) -> Self {
        let mut names = Self {
            tree,
            modules: Vec::new(),
            globs: Vec::new(),
            macros: HashMap::new(),
            functions: HashMap::new(),
        };
        names.fill();
        names.fill_functions();
        names
    }

    fn fill(&mut self) {
        for (at, module) in self.tree.modules.iter().enumerate() {
            let mut entries: HashMap<&str, Vec<Entry>> = HashMap::new();
            let mut globs = Vec::new();
            for (scope_at, scope) in module.body.scopes.iter().enumerate() {
                let macros = scope.names.iter().filter(|name| name.space == Space::Macro);
                for name in macros {
                    self.macros.entry(&name.name).or_default().push(at);
                }
                if scope_at > 0 {
                    continue;
                }
                for name in &scope.names {
                    let entry = Entry::Item(name.space, name.is_test);
                    entries.entry(&name.name).or_default().push(entry);
                }
                for (number, import) in scope.imports.iter().enumerate() {
                    match &import.name {
                        Some(name) => entries.entry(name).or_default().push(Entry::Import(number)),
                        None => globs.push(number),
                    }
                }
            }
            for child in &module.children {
                if let Some(name) = self.tree.modules.get(*child).map(|child| child.name) {
                    entries.entry(name).or_default().push(Entry::Child(*child));
                }
            }
            self.modules.push(entries);
            self.globs.push(globs);
        }
    }

    fn fill_functions(&mut self) {
        let mut functions: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, module) in self.tree.modules.iter().enumerate() {
            for block in &module.body.inherent {
                let from = From {
                    module: at,
                    scope: block.scope,
                    space: Space::Type,
                    is_test: block.is_test || module.is_test,
                    is_call: false,
                };
                if let Some(Target::Item { module, name, .. }) = self.path(&block.path, from) {
                    for function in &block.functions {
                        let key = (module, name.clone(), function.clone());
                        functions.entry(key).or_default().push(at);
                    }
                }
            }
        }
        self.functions = functions;
    }

    /// Resolves a path in a module, in each namespace that its kind may mean.
    pub(crate) fn resolve(
        &self,
        module: usize,
        scope: usize,
        path: &str,
        kind: Kind,
        is_test: bool,
    ) -> Vec<Target> {
        let all = [Space::Type, Space::Value, Space::Macro];
        let spaces: &[Space] = match kind {
            Kind::Use | Kind::Any => &all,
            Kind::Type => &[Space::Type],
            Kind::Value | Kind::OwnMethod => &[Space::Value],
            Kind::Macro => &[Space::Macro],
            Kind::Attribute | Kind::Method => &[],
        };
        let mut targets = Vec::new();
        for space in spaces {
            let from = From {
                module,
                scope,
                space: *space,
                is_test,
                is_call: kind == Kind::Macro,
            };
            let target = self.path(path, from);
            targets.extend(target.filter(|target| !targets.contains(target)));
        }
        if targets.is_empty() && kind == Kind::Use {
            targets.push(Target::External(path.to_owned()));
        }
        let is_known = |target: &Target| !matches!(target, Target::Unknown { .. });
        if targets.iter().any(is_known) {
            targets.retain(is_known);
        }
        targets
    }

    /// The modules that define the function at the end of a target, as in `Type::function`.
    pub(crate) fn functions(&self, target: &Target) -> &[usize] {
        if let Target::Item { module, name, rest } = target
            && let Some(function) = rest.first()
        {
            let key = (*module, name.clone(), function.clone());
            return self.functions.get(&key).map_or(&[], Vec::as_slice);
        }
        &[]
    }

    fn path(&self, path: &str, from: From) -> Option<Target> {
        self.follow(path, from, &mut Vec::new())
    }

    fn follow(&self, path: &str, from: From, following: &mut Following) -> Option<Target> {
        if let Some(path) = path.strip_prefix("::") {
            return Some(Target::External(path.to_owned()));
        }
        let segments: Vec<&str> = path.split("::").collect();
        let (first, mut rest) = segments.split_first()?;
        let space = space_of(rest, from);
        let start = match *first {
            "crate" => Target::Module(0),
            "self" if path != "self" || space == Space::Type => Target::Module(from.module),
            "super" => {
                let mut module = self.parent(from.module)?;
                while let Some(("super", after)) =
                    rest.split_first().map(|(first, rest)| (*first, rest))
                {
                    module = self.parent(module)?;
                    rest = after;
                }
                Target::Module(module)
            }
            name => {
                let from = From { space, ..from };
                let found = self.in_scopes(name, from, following);
                match found {
                    Some(target) => target,
                    None if space == Space::Macro && from.is_call => {
                        self.find_macro(name, from.module)?
                    }
                    None if rest.is_empty() => return None,
                    // Another crate, or a name that is not tracked: a type parameter, or the prelude.
                    None => Target::External(name.to_owned()),
                }
            }
        };
        self.descend(start, rest, from, following)
    }

    /// Resolves the segments after a target.
    fn descend(
        &self,
        start: Target,
        rest: &[&str],
        from: From,
        following: &mut Following,
    ) -> Option<Target> {
        let mut target = start;
        for (at, segment) in rest.iter().enumerate() {
            target = match target {
                Target::Module(module) => {
                    let space = space_of(rest.get(at + 1..).unwrap_or_default(), from);
                    let inner = From {
                        module,
                        scope: 0,
                        space,
                        ..from
                    };
                    let found = self.in_module(segment, inner, following);
                    let exported = || {
                        (space == Space::Macro && module == 0)
                            .then(|| self.find_macro(segment, module))
                            .flatten()
                    };
                    found.or_else(exported).unwrap_or(Target::Unknown {
                        module,
                        name: (*segment).to_owned(),
                    })
                }
                Target::Item {
                    module,
                    name,
                    rest: mut after,
                } => {
                    after.push((*segment).to_owned());
                    Target::Item {
                        module,
                        name,
                        rest: after,
                    }
                }
                Target::External(path) => Target::External(format!("{path}::{segment}")),
                unknown @ Target::Unknown { .. } => unknown,
            };
        }
        Some(target)
    }

    /// Looks up a name in the enclosing blocks, then in the module.
    fn in_scopes(&self, name: &str, from: From, following: &mut Following) -> Option<Target> {
        let module = self.tree.modules.get(from.module)?;
        let mut at = from.scope;
        while at > 0 {
            let scope: &Scope = module.body.scopes.get(at)?;
            let own = scope.names.iter();
            if own
                .clone()
                .any(|own| own.name == name && fits(own.space, from.space))
            {
                return Some(Target::Item {
                    module: from.module,
                    name: name.to_owned(),
                    rest: Vec::new(),
                });
            }
            for (number, import) in scope.imports.iter().enumerate() {
                let is_named = import.name.as_deref().is_none_or(|import| import == name);
                let inner = From { scope: at, ..from };
                if is_named && let Some(target) = self.import(name, number, inner, following) {
                    return Some(target);
                }
            }
            at = scope.parent?;
        }
        self.in_module(name, from, following)
    }

    /// Looks up a name in a module: in its items, children, imports and globs.
    fn in_module(&self, name: &str, from: From, following: &mut Following) -> Option<Target> {
        let from = From { scope: 0, ..from };
        let entries = self.modules.get(from.module)?.get(name);
        let mut unknown = None;
        for entry in entries.into_iter().flatten() {
            let target = match *entry {
                Entry::Item(space, is_test) => {
                    let is_seen = !is_test || from.is_test;
                    (fits(space, from.space) && is_seen).then(|| Target::Item {
                        module: from.module,
                        name: name.to_owned(),
                        rest: Vec::new(),
                    })
                }
                Entry::Child(child) => (from.space == Space::Type).then_some(Target::Module(child)),
                Entry::Import(number) => self.import(name, number, from, following),
            };
            match target {
                // Another entry may define the name in this namespace.
                Some(target @ Target::Unknown { .. }) => unknown = unknown.or(Some(target)),
                Some(target) => return Some(target),
                None => {}
            }
        }
        let globs = self.globs.get(from.module)?;
        unknown.or_else(|| {
            globs
                .iter()
                .find_map(|number| self.import(name, *number, from, following))
        })
    }

    /// Resolves a name through an import of the scope.
    fn import(
        &self,
        name: &str,
        number: usize,
        from: From,
        following: &mut Following,
    ) -> Option<Target> {
        let module = self.tree.modules.get(from.module)?;
        let import = module.body.scopes.get(from.scope)?.imports.get(number)?;
        let key = (from.module, from.scope, number);
        if (import.is_test && !from.is_test && !module.is_test) || following.contains(&key) {
            return None;
        }
        following.push(key);
        let target = if import.name.is_some() {
            let target = self.follow(&import.path, from, following);
            // `use name;` of a macro is not a crate.
            let is_crate = from.space == Space::Type
                && !import.path.contains("::")
                && !self.macros.contains_key(import.path.as_str());
            target.or_else(|| is_crate.then(|| Target::External(import.path.clone())))
        } else {
            let inner = From {
                space: Space::Type,
                ..from
            };
            match self.follow(&import.path, inner, following) {
                Some(Target::Module(module)) => {
                    let inner = From { module, ..from };
                    self.in_module(name, inner, following)
                }
                _ => None,
            }
        };
        following.pop();
        target
            .filter(|target| !matches!(target, Target::Unknown { .. }) || from.space == Space::Type)
    }

    /// Finds a macro by name: in the module, in an enclosing one, or in any other.
    fn find_macro(&self, name: &str, module: usize) -> Option<Target> {
        let defined = self.macros.get(name)?;
        let mut enclosing = Some(module);
        while let Some(at) = enclosing {
            if defined.contains(&at) {
                break;
            }
            enclosing = self.parent(at);
        }
        Some(Target::Item {
            module: enclosing.or_else(|| defined.first().copied())?,
            name: name.to_owned(),
            rest: Vec::new(),
        })
    }

    fn parent(&self, module: usize) -> Option<usize> {
        self.tree.modules.get(module)?.parent
    }
}

/// The namespace of a segment before these: only the last one can be other than a type or module.
fn space_of(after: &[&str], from: From) -> Space {
    if after.is_empty() {
        from.space
    } else {
        Space::Type
    }
}

fn fits(space: Space, wanted: Space) -> bool {
    space == wanted || (space == Space::Both && wanted != Space::Macro)
}
