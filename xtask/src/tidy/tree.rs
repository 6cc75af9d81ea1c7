//! The module tree of each target, built from its root file along `mod` declarations.

use std::collections::BTreeMap;

use super::facts::{Body, File, ModuleDeclaration};
use super::workspace::{Package, Target};

/// The modules of a target.
#[derive(Debug)]
pub(crate) struct Crate<'w> {
    pub(crate) package: &'w Package,
    pub(crate) target: &'w Target,
    /// The modules; the root is first.
    pub(crate) modules: Vec<Module<'w>>,
    /// Modules whose file is missing or cannot be parsed.
    pub(crate) missing: Vec<Missing<'w>>,
}

/// A module whose file is missing or cannot be parsed.
#[derive(Debug)]
pub(crate) struct Missing<'w> {
    pub(crate) file: &'w str,
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// One module.
#[derive(Debug)]
pub(crate) struct Module<'w> {
    /// `a::b`; empty for the root.
    pub(crate) path: String,
    pub(crate) name: &'w str,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    pub(crate) file: &'w str,
    pub(crate) body: &'w Body,
    /// Whether only test builds contain the module.
    pub(crate) is_test: bool,
}

impl Crate<'_> {
    /// The name of the package and, for a program, its name.
    pub(crate) fn name(&self) -> String {
        if self.target.is_lib {
            self.package.name.clone()
        } else {
            format!("{} (bin {})", self.package.name, self.target.name)
        }
    }
}

/// Builds the module tree of a target.
pub(crate) fn walk<'w>(
    package: &'w Package,
    target: &'w Target,
    files: &'w BTreeMap<String, File>,
) -> Crate<'w> {
    let mut walk = TreeBuilder {
        files,
        modules: Vec::new(),
        missing: Vec::new(),
    };
    if let Some((path, file)) = files.get_key_value(&target.root) {
        let location = Location {
            file: path,
            folder: parent(path).to_owned(),
            path_base: parent(path).to_owned(),
            is_test: target.is_test || file.is_test,
        };
        walk.module(None, "", &location, &file.body);
    } else {
        walk.missing.push(Missing {
            file: &target.root,
            line: 0,
            what: format!(
                "the root of target {} is missing or cannot be parsed",
                target.name
            ),
        });
    }
    Crate {
        package,
        target,
        modules: walk.modules,
        missing: walk.missing,
    }
}

struct TreeBuilder<'w> {
    files: &'w BTreeMap<String, File>,
    modules: Vec<Module<'w>>,
    missing: Vec<Missing<'w>>,
}

/// The location of a module's contents.
#[derive(Clone)]
struct Location<'w> {
    file: &'w str,
    /// The folder of its child modules.
    folder: String,
    /// The folder that `#[path]` is relative to.
    path_base: String,
    is_test: bool,
}

impl<'w> TreeBuilder<'w> {
    fn module(
        &mut self,
        parent: Option<usize>,
        name: &'w str,
        location: &Location<'w>,
        body: &'w Body,
    ) {
        let outer = parent.and_then(|at| self.modules.get(at));
        let path = match outer.map(|outer| outer.path.as_str()) {
            None | Some("") => name.to_owned(),
            Some(outer) => format!("{outer}::{name}"),
        };
        let at = self.modules.len();
        self.modules.push(Module {
            path,
            name,
            parent,
            children: Vec::new(),
            file: location.file,
            body,
            is_test: location.is_test,
        });
        if let Some(outer) = parent.and_then(|at| self.modules.get_mut(at)) {
            outer.children.push(at);
        }
        for declaration in &body.modules {
            self.declaration(at, declaration, location);
        }
    }

    fn declaration(
        &mut self,
        outer: usize,
        declaration: &'w ModuleDeclaration,
        location: &Location<'w>,
    ) {
        let name = &declaration.name;
        let is_test = location.is_test || declaration.is_test;
        if let Some(body) = &declaration.inline {
            let folder = format!("{}/{name}", location.folder);
            let inner = Location {
                path_base: folder.clone(),
                folder,
                is_test,
                ..location.clone()
            };
            self.module(Some(outer), name, &inner, body);
            return;
        }
        let candidates = match &declaration.path {
            Some(path) => vec![normal(&format!("{}/{path}", location.path_base))],
            None => vec![
                format!("{}/{name}.rs", location.folder),
                format!("{}/{name}/mod.rs", location.folder),
            ],
        };
        let found = candidates
            .iter()
            .find_map(|path| self.files.get_key_value(path));
        let Some((path, file)) = found else {
            self.missing.push(Missing {
                file: location.file,
                line: declaration.line,
                what: format!("the file of module {name} is missing or cannot be parsed"),
            });
            return;
        };
        let owns_folder = declaration.path.is_some() || path.ends_with("/mod.rs");
        let folder = if owns_folder {
            parent(path)
        } else {
            path.trim_end_matches(".rs")
        };
        let inner = Location {
            file: path,
            folder: folder.to_owned(),
            path_base: parent(path).to_owned(),
            is_test: is_test || file.is_test,
        };
        self.module(Some(outer), name, &inner, &file.body);
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
