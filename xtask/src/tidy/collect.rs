//! Parses a file and collects its facts.

use std::collections::HashMap;
use std::mem;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use super::cfg;
use super::facts::{Body, File, Import, Inherent, Kind, ModuleDeclaration, Name, Reference, Scope};
use super::syntax::{
    definition, expression_attributes, impl_item_attributes, is_public, item_attributes,
    item_visibility, joined, path_attribute, trait_item_attributes, type_path, used_paths,
};
use super::tokens::{self, plain};

/// Parses a file. An error contains the line.
pub(crate) fn parse(text: &str) -> Result<File, String> {
    let parsed = syn::parse_file(text)
        .map_err(|error| format!("line {}: {error}", error.span().start().line))?;
    let mut collector = Collector {
        is_test: cfg::is_test(&parsed.attrs),
        ..Collector::default()
    };
    if collector.is_test {
        collector.test_lines.push((0, usize::MAX));
    }
    collector.declare(&parsed.items);
    visit::visit_file(&mut collector, &parsed);
    Ok(File {
        lines: text.lines().count(),
        code_lines: code_lines(text, &collector.test_lines),
        has_docs: text.starts_with("//!"),
        is_test: collector.is_test,
        body: collector.body,
    })
}

/// Counts the lines outside of these ranges that are neither blank nor only a comment.
fn code_lines(text: &str, test_lines: &[(usize, usize)]) -> usize {
    let is_code = |(at, line): &(usize, &str)| {
        let line_number = at + 1;
        let is_test = test_lines
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line_number));
        let line = line.trim_start();
        !is_test && !line.is_empty() && !line.starts_with("//")
    };
    text.lines().enumerate().filter(is_code).count()
}

#[derive(Default)]
struct Collector {
    body: Body,
    /// The index of each reference in `body`.
    indexes: HashMap<(usize, Kind, bool, String), usize>,
    scope: usize,
    is_test: bool,
    /// The type of the enclosing `impl` block, if it has a name.
    own_type: Option<String>,
    /// The kind of the next path.
    kind: Option<Kind>,
    test_lines: Vec<(usize, usize)>,
}

impl Collector {
    fn add(&mut self, path: String, kind: Kind, line: usize) {
        let path = match (path.strip_prefix("Self::"), &self.own_type) {
            (Some(rest), Some(own)) => format!("{own}::{rest}"),
            (Some(_), None) => return,
            (None, _) if path == "Self" => return,
            (None, _) => path,
        };
        let key = (self.scope, kind, self.is_test, path);
        if let Some(at) = self.indexes.get(&key) {
            if let Some(reference) = self.body.references.get_mut(*at) {
                reference.lines.push(line);
            }
            return;
        }
        self.body.references.push(Reference {
            scope: self.scope,
            kind,
            path: key.3.clone(),
            is_test: self.is_test,
            lines: vec![line],
        });
        self.indexes.insert(key, self.body.references.len() - 1);
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        tokens::scan(tokens, &mut |path, kind, line| self.add(path, kind, line));
    }

    /// Visits a node with these attributes.
    fn visit_with_attributes<'a>(
        &mut self,
        attributes: &[Attribute],
        span: impl FnOnce() -> Span,
        visit: impl FnOnce(&mut Self) + 'a,
    ) {
        let is_test = !self.is_test && cfg::is_test(attributes);
        if is_test {
            let span = span();
            self.test_lines.push((span.start().line, span.end().line));
        }
        let before = self.is_test;
        self.is_test |= is_test;
        visit(self);
        self.is_test = before;
    }

    /// Adds the names that these items define to the current scope.
    fn declare<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) {
        let outer_is_test = self.is_test;
        let Some(scope) = self.body.scopes.get_mut(self.scope) else {
            return;
        };
        for item in items {
            let is_test = outer_is_test || cfg::is_test(item_attributes(item));
            match item {
                Item::Use(item) => {
                    let is_public = is_public(&item.vis);
                    let imports = used_paths(item).into_iter().map(|used| Import {
                        name: used.name,
                        path: used.path,
                        is_public,
                        is_test,
                    });
                    scope.imports.extend(imports);
                }
                Item::ExternCrate(item) => {
                    let renamed = item.rename.as_ref().map(|(_, name)| name);
                    scope.imports.push(Import {
                        name: Some(plain(renamed.unwrap_or(&item.ident))),
                        path: format!("::{}", plain(&item.ident)),
                        is_public: is_public(&item.vis),
                        is_test,
                    });
                }
                item => scope
                    .names
                    .extend(definition(item).map(|(ident, space)| Name {
                        name: plain(ident),
                        space,
                        is_public: item_visibility(item).is_some_and(is_public),
                        is_test,
                    })),
            }
        }
    }

    /// Visits with a new body instead of the current one, and returns the new body.
    fn in_body(&mut self, visit: impl FnOnce(&mut Self)) -> Body {
        let outer = (
            mem::take(&mut self.body),
            mem::take(&mut self.indexes),
            mem::take(&mut self.scope),
            self.own_type.take(),
        );
        visit(self);
        let inner;
        (inner, (self.body, self.indexes, self.scope, self.own_type)) =
            (mem::take(&mut self.body), outer);
        inner
    }

    fn with_kind(&mut self, kind: Kind, visit: impl FnOnce(&mut Self)) {
        self.kind = Some(kind);
        visit(self);
        self.kind = None;
    }
}

impl<'a> Visit<'a> for Collector {
    fn visit_item(&mut self, item: &'a Item) {
        self.visit_with_attributes(
            item_attributes(item),
            || item.span(),
            |this| {
                if let Item::Verbatim(tokens) = item {
                    this.add_tokens(tokens.clone());
                }
                visit::visit_item(this, item);
            },
        );
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        for attribute in &item.attrs {
            self.visit_attribute(attribute);
        }
        let inline = item.content.as_ref().map(|(_, items)| {
            self.in_body(|this| {
                this.declare(items);
                for item in items {
                    this.visit_item(item);
                }
            })
        });
        self.body.modules.push(ModuleDeclaration {
            name: plain(&item.ident),
            line: item.ident.span().start().line,
            is_public: is_public(&item.vis),
            is_test: self.is_test,
            path: item.attrs.iter().find_map(path_attribute),
            inline,
        });
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        for attribute in &item.attrs {
            self.visit_attribute(attribute);
        }
        for used in used_paths(item) {
            self.add(used.path, Kind::Use, used.line);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'a syn::ItemExternCrate) {
        let line = item.ident.span().start().line;
        self.add(format!("::{}", plain(&item.ident)), Kind::Use, line);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        let is_test = |attribute: &Attribute| {
            let last = attribute.path().segments.last();
            last.is_some_and(|segment| segment.ident == "test")
        };
        if item.attrs.iter().any(is_test) {
            let line = item.sig.ident.span().start().line;
            self.body.tests.push((plain(&item.sig.ident), line));
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        if item.ident.is_some() {
            for attribute in &item.attrs {
                self.visit_attribute(attribute);
            }
            self.add_tokens(item.mac.tokens.clone());
        } else {
            visit::visit_item_macro(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let own_type = type_path(&item.self_ty);
        if let (Some(path), None) = (&own_type, &item.trait_) {
            let functions = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) => Some(plain(&function.sig.ident)),
                syn::ImplItem::Const(constant) => Some(plain(&constant.ident)),
                _ => None,
            });
            self.body.inherent.push(Inherent {
                scope: self.scope,
                path: path.clone(),
                functions: functions.collect(),
                is_test: self.is_test,
            });
        }
        let outer = mem::replace(&mut self.own_type, own_type);
        visit::visit_item_impl(self, item);
        self.own_type = outer;
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let outer = self.own_type.take();
        visit::visit_item_trait(self, item);
        self.own_type = outer;
    }

    fn visit_impl_item(&mut self, item: &'a syn::ImplItem) {
        let attributes = impl_item_attributes(item);
        self.visit_with_attributes(
            attributes,
            || item.span(),
            |this| {
                if let syn::ImplItem::Verbatim(tokens) = item {
                    this.add_tokens(tokens.clone());
                }
                visit::visit_impl_item(this, item);
            },
        );
    }

    fn visit_trait_item(&mut self, item: &'a syn::TraitItem) {
        let attributes = trait_item_attributes(item);
        self.visit_with_attributes(
            attributes,
            || item.span(),
            |this| {
                if let syn::TraitItem::Verbatim(tokens) = item {
                    this.add_tokens(tokens.clone());
                }
                visit::visit_trait_item(this, item);
            },
        );
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        self.visit_with_attributes(
            &field.attrs,
            || field.span(),
            |this| visit::visit_field(this, field),
        );
    }

    fn visit_field_value(&mut self, field: &'a syn::FieldValue) {
        let visit = |this: &mut Self| visit::visit_field_value(this, field);
        self.visit_with_attributes(&field.attrs, || field.span(), visit);
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        let visit = |this: &mut Self| visit::visit_variant(this, variant);
        self.visit_with_attributes(&variant.attrs, || variant.span(), visit);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.visit_with_attributes(
            &arm.attrs,
            || arm.span(),
            |this| visit::visit_arm(this, arm),
        );
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        self.visit_with_attributes(
            &local.attrs,
            || local.span(),
            |this| visit::visit_local(this, local),
        );
    }

    fn visit_stmt_macro(&mut self, statement: &'a syn::StmtMacro) {
        let visit = |this: &mut Self| visit::visit_stmt_macro(this, statement);
        self.visit_with_attributes(&statement.attrs, || statement.span(), visit);
    }

    fn visit_expr(&mut self, expression: &'a syn::Expr) {
        let attributes = expression_attributes(expression);
        self.visit_with_attributes(
            attributes,
            || expression.span(),
            |this| {
                if let syn::Expr::Verbatim(tokens) = expression {
                    this.add_tokens(tokens.clone());
                }
                visit::visit_expr(this, expression);
            },
        );
    }

    fn visit_type(&mut self, node: &'a syn::Type) {
        if let syn::Type::Verbatim(tokens) = node {
            self.add_tokens(tokens.clone());
        }
        visit::visit_type(self, node);
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        let items: Vec<_> = block
            .stmts
            .iter()
            .filter_map(|statement| match statement {
                syn::Stmt::Item(item) => Some(item),
                _ => None,
            })
            .collect();
        if items.is_empty() {
            visit::visit_block(self, block);
            return;
        }
        let outer = self.scope;
        self.body.scopes.push(Scope {
            parent: Some(outer),
            ..Scope::default()
        });
        self.scope = self.body.scopes.len() - 1;
        self.declare(items);
        visit::visit_block(self, block);
        self.scope = outer;
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let kind = self.kind.take().unwrap_or(Kind::Any);
        if let Some(first) = path.segments.first() {
            self.add(joined(path), kind, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_type_path(&mut self, node: &'a syn::TypePath) {
        if let Some(own) = &node.qself {
            self.visit_qself(own);
        }
        self.with_kind(Kind::Type, |this| this.visit_path(&node.path));
    }

    fn visit_trait_bound(&mut self, node: &'a syn::TraitBound) {
        if let Some(lifetimes) = &node.lifetimes {
            self.visit_bound_lifetimes(lifetimes);
        }
        self.with_kind(Kind::Type, |this| this.visit_path(&node.path));
    }

    fn visit_expr_path(&mut self, node: &'a syn::ExprPath) {
        for attribute in &node.attrs {
            self.visit_attribute(attribute);
        }
        if let Some(own) = &node.qself {
            self.visit_qself(own);
        }
        self.with_kind(Kind::Value, |this| this.visit_path(&node.path));
    }

    fn visit_expr_method_call(&mut self, node: &'a syn::ExprMethodCall) {
        let line = node.method.span().start().line;
        let name = plain(&node.method);
        if let (syn::Expr::Path(receiver), Some(own)) = (&*node.receiver, &self.own_type)
            && receiver.path.is_ident("self")
        {
            self.add(format!("{own}::{name}"), Kind::OwnMethod, line);
        }
        self.add(name, Kind::Method, line);
        visit::visit_expr_method_call(self, node);
    }

    fn visit_macro(&mut self, node: &'a syn::Macro) {
        self.with_kind(Kind::Macro, |this| this.visit_path(&node.path));
        self.add_tokens(node.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        let path = attribute.path();
        if path.is_ident("doc") || path.is_ident("cfg") {
            return;
        }
        let line = attribute.pound_token.span.start().line;
        self.add(joined(path), Kind::Attribute, line);
        let is_lint = ["allow", "expect", "warn", "deny", "forbid", "path"];
        if is_lint.iter().any(|name| path.is_ident(name)) {
            return;
        }
        let tokens = match &attribute.meta {
            syn::Meta::Path(_) => return,
            syn::Meta::List(list) => list.tokens.clone(),
            syn::Meta::NameValue(pair) => pair.value.to_token_stream(),
        };
        if path.is_ident("cfg_attr") {
            for word in tokens.clone() {
                if let TokenTree::Ident(name) = word {
                    self.add(plain(&name), Kind::Attribute, line);
                }
            }
        }
        self.add_strings(tokens.clone());
        self.add_tokens(tokens);
    }

    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}
}

impl Collector {
    /// Adds paths in string literals, as in `#[serde(with = "crate::text")]`.
    fn add_strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                self.add_strings(group.stream());
            }
            let TokenTree::Literal(literal) = token else {
                continue;
            };
            if let syn::Lit::Str(text) = syn::Lit::new(literal)
                && text.value().contains("::")
                && let Ok(path) = text.parse::<syn::Path>()
            {
                self.add(joined(&path), Kind::Any, text.span().start().line);
            }
        }
    }
}
