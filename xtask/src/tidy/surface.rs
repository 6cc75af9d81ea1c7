//! The public surface of a library: its public modules and their public items.

use super::tree::{Crate, Module};

/// The size of a public surface.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surface {
    /// Public modules, without the root.
    pub modules: usize,
    /// Items and re-exports in public modules and the root; an item with two paths counts twice.
    pub items: usize,
}

/// Measures the surface of a library.
pub(crate) fn of(tree: &Crate<'_>) -> Surface {
    let mut surface = Surface::default();
    if let Some(root) = tree.modules.first() {
        add(tree, root, &mut surface);
    }
    surface
}

fn add(tree: &Crate<'_>, module: &Module<'_>, surface: &mut Surface) {
    let Some(scope) = module.body.scopes.first() else {
        return;
    };
    let names = scope.names.iter();
    let names = names.filter(|name| name.is_public && !name.is_test);
    let imports = scope.imports.iter();
    let imports = imports.filter(|import| import.is_public && !import.is_test);
    surface.items += names.count() + imports.count();
    for child in &module.children {
        let Some(child) = tree.modules.get(*child) else {
            continue;
        };
        let mut declarations = module.body.modules.iter();
        let is_public =
            declarations.any(|declared| declared.name == child.name && declared.is_public);
        if is_public && !child.is_test {
            surface.modules += 1;
            add(tree, child, surface);
        }
    }
}
