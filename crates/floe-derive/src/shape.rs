//! The kind of a type, as far as its name shows.
//!
//! A macro sees names, not types: aliases and user types are [`Shape::Unknown`] and checked by the compiler.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Expr, ExprLit, ExprUnary, GenericArgument, Index, Lit, LitFloat, PathArguments, PathSegment,
    Type, UnOp,
};

/// The kind of a type, as far as its name shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Bool,
    Integer,
    Float,
    /// The decimal number of the store.
    Decimal,
    Uuid,
    List,
    Map,
    Set,
    Unknown,
}

impl Shape {
    pub(crate) fn of(ty: &Type) -> Self {
        let Some(segment) = last_segment(ty) else {
            return Self::Unknown;
        };
        match segment.ident.to_string().as_str() {
            "String" => Self::Text,
            "bool" => Self::Bool,
            "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => Self::Integer,
            "f32" | "f64" => Self::Float,
            "Number" => Self::Decimal,
            "Uuid" => Self::Uuid,
            "Vec" => Self::List,
            "BTreeMap" | "HashMap" => Self::Map,
            "BTreeSet" | "HashSet" => Self::Set,
            _ => Self::Unknown,
        }
    }

    /// Whether values are `Copy`, so that a reference can be used as a value.
    pub(crate) const fn is_copied(self) -> bool {
        matches!(self, Self::Bool | Self::Integer | Self::Uuid)
    }

    pub(crate) const fn is_collection(self) -> bool {
        matches!(self, Self::List | Self::Map | Self::Set)
    }

    /// An expression for a value of the type. Literals are converted: `1` for a float, `"a"` for a `String`.
    pub(crate) fn value(self, ty: &Type, expr: &Expr) -> TokenStream {
        let Some(literal) = literal(expr) else {
            return quote!(#expr);
        };
        let span = generated_at(expr.span());
        match (self, literal) {
            (Self::Float, Lit::Int(int)) if int.suffix().is_empty() => {
                let float = LitFloat::new(&format!("{}.0", int.base10_digits()), span);
                let sign = matches!(expr, Expr::Unary(_)).then(|| quote!(-));
                quote!(#sign #float)
            }
            (Self::Decimal, Lit::Int(int)) if int.suffix().is_empty() => {
                quote_spanned!(span=> <#ty as ::core::convert::From<i64>>::from(#expr))
            }
            (Self::Text, Lit::Str(_)) => {
                quote_spanned!(span=> <#ty as ::core::convert::From<&str>>::from(#expr))
            }
            _ => quote!(#expr),
        }
    }
}

/// A function that returns the default of a field: the expression, or the default of its type.
pub(crate) fn default_value(ty: &Type, default: &Option<Expr>) -> TokenStream {
    match default {
        Some(default) => {
            let default = Shape::of(ty).value(ty, default);
            quote!(|| #default)
        }
        None => quote!(::core::default::Default::default),
    }
}

/// An `Option` in generated code.
pub(crate) fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// The types that convert to a key or a group of one part of this type, each with the part as an expression of
/// `self`.
pub(crate) fn sources_of_one(ty: &Type, shape: Shape) -> Vec<(TokenStream, TokenStream)> {
    let mut sources = vec![(quote!(#ty), quote!(self))];
    if shape == Shape::Text {
        let text = quote!(<#ty as ::core::convert::From<&str>>::from(self));
        sources.push((quote!(&str), text.clone()));
        sources.push((quote!(&#ty), text));
    }
    sources
}

/// A tuple that converts to a key or a group of several parts.
pub(crate) struct TupleSource {
    pub(crate) generics: TokenStream,
    pub(crate) tuple: TokenStream,
    /// The parts, as expressions of `self`.
    pub(crate) values: Vec<TokenStream>,
}

impl TupleSource {
    /// A tuple accepts anything that converts to text for text, and exactly the type for everything else, so that
    /// literals are inferred.
    pub(crate) fn of<'t>(parts: impl IntoIterator<Item = (&'t Type, Shape)>) -> Self {
        let (mut generics, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (ty, shape)) in parts.into_iter().enumerate() {
            let index = Index::from(at);
            if shape == Shape::Text {
                let parameter = format_ident!("__Text{at}");
                generics.push(quote!(#parameter: ::core::convert::Into<#ty>));
                types.push(quote!(#parameter));
                values.push(quote!(::core::convert::Into::<#ty>::into(self.#index)));
            } else {
                types.push(quote!(#ty));
                values.push(quote!(self.#index));
            }
        }
        Self {
            generics: quote!(<#(#generics),*>),
            tuple: quote!((#(#types,)*)),
            values,
        }
    }
}

/// A span at the user's code with the hygiene of generated code: errors are shown there, lints are not, and
/// variable names do not conflict with the user's.
pub(crate) fn generated_at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// The literal of an expression, with or without a sign.
pub(crate) fn literal(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => literal(expr),
        _ => None,
    }
}

/// The value of an integer literal.
pub(crate) fn whole_number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Int(int), ..
        }) => int.base10_parse().ok(),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => whole_number(expr).map(|number| -number),
        _ => None,
    }
}

/// The `T` of an `Option<T>`.
pub(crate) fn option_of(ty: &Type) -> Option<&Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

/// The last segment of the type's path. Types from macros may be in groups without delimiters.
fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}
