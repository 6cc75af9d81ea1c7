//! Helpers for the syntax tree: attributes of a node, the name that an item defines, a path as text, the paths of a
//! `use`.

use proc_macro2::Ident;
use syn::{Attribute, Expr, ImplItem, Item, TraitItem, UseTree};

use super::facts::Space;
use super::tokens::plain;

macro_rules! attributes_of {
    ($node:expr, $kind:ident: $($variant:ident)*) => {
        match $node {
            $($kind::$variant(node) => &node.attrs,)*
            _ => &[],
        }
    };
}

/// The attributes of an item.
pub(crate) fn item_attributes(item: &Item) -> &[Attribute] {
    attributes_of!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct
        Trait TraitAlias Type Union Use)
}

/// The attributes of an item of an `impl` block.
pub(crate) fn impl_item_attributes(item: &ImplItem) -> &[Attribute] {
    attributes_of!(item, ImplItem: Const Fn Type Macro)
}

/// The attributes of an item of a trait.
pub(crate) fn trait_item_attributes(item: &TraitItem) -> &[Attribute] {
    attributes_of!(item, TraitItem: Const Fn Type Macro)
}

/// The attributes of an expression.
pub(crate) fn expression_attributes(expression: &Expr) -> &[Attribute] {
    attributes_of!(expression, Expr: Array Assign Async Await Binary Block Break Call Cast Closure
        Const Continue Field ForLoop Group If Index Infer Let Lit Loop Macro Match MethodCall Paren
        Path Range RawAddr Reference Repeat Return Struct Try TryBlock Tuple Unary Unsafe While Yield)
}

/// A path without its generic arguments.
pub(crate) fn joined(path: &syn::Path) -> String {
    let mut text = String::new();
    for segment in &path.segments {
        if !text.is_empty() || path.leading_colon.is_some() {
            text += "::";
        }
        text += &plain(&segment.ident);
    }
    text
}

/// The path of a named type, also behind references.
pub(crate) fn type_path(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(node) if node.qself.is_none() => Some(joined(&node.path)),
        syn::Type::Reference(node) => type_path(&node.elem),
        syn::Type::Paren(node) => type_path(&node.elem),
        syn::Type::Group(node) => type_path(&node.elem),
        _ => None,
    }
}

/// The value of `#[path = ".."]`.
pub(crate) fn path_attribute(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    let Expr::Lit(literal) = &pair.value else {
        return None;
    };
    match &literal.lit {
        syn::Lit::Str(path) if pair.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

/// The name that an item defines; `None` for modules, imports and `impl` blocks.
pub(crate) fn definition(item: &Item) -> Option<(&Ident, Space)> {
    Some(match item {
        Item::Const(item) => (&item.ident, Space::Value),
        Item::Enum(item) => (&item.ident, Space::Type),
        Item::Fn(item) => (&item.sig.ident, Space::Value),
        Item::Macro(item) => (item.ident.as_ref()?, Space::Macro),
        Item::Static(item) => (&item.ident, Space::Value),
        Item::Struct(item) => match item.fields {
            syn::Fields::Named(_) => (&item.ident, Space::Type),
            syn::Fields::Unnamed(_) | syn::Fields::Unit => (&item.ident, Space::Both),
        },
        Item::Trait(item) => (&item.ident, Space::Type),
        Item::TraitAlias(item) => (&item.ident, Space::Type),
        Item::Type(item) => (&item.ident, Space::Type),
        Item::Union(item) => (&item.ident, Space::Type),
        _ => return None,
    })
}

/// Whether the visibility is unrestricted `pub`.
pub(crate) fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// The visibility of an item, if it can have one.
pub(crate) fn item_visibility(item: &Item) -> Option<&syn::Visibility> {
    Some(match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::TraitAlias(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return None,
    })
}

/// A path in a `use`.
#[derive(Debug)]
pub(crate) struct UsedPath {
    /// The name in the scope; `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// All paths of a `use`.
pub(crate) fn used_paths(item: &syn::ItemUse) -> Vec<UsedPath> {
    let mut paths = Vec::new();
    let prefix = item.leading_colon.as_ref().map_or("", |_| "::");
    add_paths(&item.tree, prefix, &mut paths);
    paths
}

fn add_paths(tree: &UseTree, prefix: &str, paths: &mut Vec<UsedPath>) {
    // `a::{self}` is `a`.
    let path_of = |ident: &Ident| {
        if ident == "self" && !prefix.is_empty() {
            prefix.trim_end_matches("::").to_owned()
        } else {
            format!("{prefix}{}", plain(ident))
        }
    };
    let line_of = |ident: &Ident| ident.span().start().line;
    match tree {
        UseTree::Path(path) => {
            let prefix = format!("{prefix}{}::", plain(&path.ident));
            add_paths(&path.tree, &prefix, paths);
        }
        UseTree::Name(name) => {
            let path = path_of(&name.ident);
            paths.push(UsedPath {
                name: path.rsplit("::").next().map(str::to_owned),
                path,
                line: line_of(&name.ident),
            });
        }
        UseTree::Rename(rename) => paths.push(UsedPath {
            name: Some(plain(&rename.rename)),
            path: path_of(&rename.ident),
            line: line_of(&rename.ident),
        }),
        UseTree::Glob(glob) => paths.push(UsedPath {
            name: None,
            path: prefix.trim_end_matches("::").to_owned(),
            line: glob.star_token.span.start().line,
        }),
        UseTree::Group(group) => {
            for tree in &group.items {
                add_paths(tree, prefix, paths);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_of_a_use_has_its_name() {
        let item = syn::parse_str("use a::{self, b::{self as c, D as E, *}, f};").unwrap();
        let paths: Vec<_> = used_paths(&item)
            .into_iter()
            .map(|used| (used.name.unwrap_or("*".to_owned()), used.path))
            .collect();
        let expected = [
            ("a", "a"),
            ("c", "a::b"),
            ("E", "a::b::D"),
            ("*", "a::b"),
            ("f", "a::f"),
        ];
        assert_eq!(paths, expected.map(|(n, p)| (n.to_owned(), p.to_owned())));
    }
}
