//! Finds out what a path stands for: the module that defines the item it names, also through imports,
//! re-exports, renames and globs.
//!
//! Names that macros generate are not known; a path to one stands for the module it is looked up in.

use std::collections::HashMap;

use super::facts::{Kind, Scope, Space};
use super::tree::Crate;

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A module of the crate.
    Module(usize),
    /// An item of a module; `rest` is what follows it in the path, as the function of a type.
    Item {
        module: usize,
        name: String,
        rest: Vec<String>,
    },
    /// A name that is not found in a module of the crate.
    Unknown { module: usize, name: String },
    /// Something of another crate, by its full path.
    External(String),
}

/// The names of one crate.
pub(crate) struct Names<'c> {
    tree: &'c Crate<'c>,
    modules: Vec<HashMap<&'c str, Vec<Entry>>>,
    globs: Vec<Vec<usize>>,
    /// Modules that define a macro of a name.
    macros: HashMap<&'c str, Vec<usize>>,
    /// Modules with functions of types: by the type's module, its name and the function's name.
    functions: HashMap<(usize, String, String), Vec<usize>>,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Item(Space, bool),
    Child(usize),
    /// The number of the import in the module's scope.
    Import(usize),
}

/// Where a name is looked up.
#[derive(Clone, Copy)]
struct From {
    module: usize,
    scope: usize,
    space: Space,
    is_test: bool,
    /// Whether it is a macro that is called: found by its name alone, as `macro_rules!` are.
    is_call: bool,
}

/// Imports that are being followed, so that none is followed in a ring.
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

    /// What a path stands for that is written in a module, in each namespace that its kind may mean.
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

    /// The modules with the functions that a target ends in, as `Type::function`.
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
                while let Some(("super", behind)) =
                    rest.split_first().map(|(first, rest)| (*first, rest))
                {
                    module = self.parent(module)?;
                    rest = behind;
                }
                Target::Module(module)
            }
            name => {
                let from = From { space, ..from };
                let found = self.in_scopes(name, from, following);
                match found {
                    Some(target) => target,
                    None if space == Space::Macro && from.is_call => {
                        self.macro_around(name, from.module)?
                    }
                    None if rest.is_empty() => return None,
                    // Another crate, or a name that is not looked up: of a type parameter, of the prelude.
                    None => Target::External(name.to_owned()),
                }
            }
        };
        self.descend(start, rest, from, following)
    }

    /// Goes from a target along the segments behind it.
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
                            .then(|| self.macro_around(segment, module))
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
                    rest: mut behind,
                } => {
                    behind.push((*segment).to_owned());
                    Target::Item {
                        module,
                        name,
                        rest: behind,
                    }
                }
                Target::External(path) => Target::External(format!("{path}::{segment}")),
                unknown @ Target::Unknown { .. } => unknown,
            };
        }
        Some(target)
    }

    /// Looks a name up in the blocks around, then in the module.
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

    /// Looks a name up in a module: its items, its children, its imports, and what globs bring in.
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
                // Another entry may have the name in this namespace.
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

    /// What a name stands for that an import of the scope brings in.
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
            // `use name;` of a macro is no crate.
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

    /// A macro of this name: of the module, of one around it, or of any other.
    fn macro_around(&self, name: &str, module: usize) -> Option<Target> {
        let defined = self.macros.get(name)?;
        let mut around = Some(module);
        while let Some(at) = around {
            if defined.contains(&at) {
                break;
            }
            around = self.parent(at);
        }
        Some(Target::Item {
            module: around.or_else(|| defined.first().copied())?,
            name: name.to_owned(),
            rest: Vec::new(),
        })
    }

    fn parent(&self, module: usize) -> Option<usize> {
        self.tree.modules.get(module)?.parent
    }
}

/// The namespace of a segment that these follow: only the last can be anything but a type or module.
fn space_of(behind: &[&str], from: From) -> Space {
    if behind.is_empty() {
        from.space
    } else {
        Space::Type
    }
}

fn fits(space: Space, wanted: Space) -> bool {
    space == wanted || (space == Space::Both && wanted != Space::Macro)
}
