//! Constraints of fields: parsing, compatibility with the type, and the code that checks them.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Expr, ExprPath, Ident, Path, Result, Type};

use crate::attributes::{KnownAttributes, SeenAttributes, error_at, expression, list_of, nested};
use crate::shape::{Shape, generated_at, option, whole_number};

/// A constraint on the values of a field.
#[allow(
    clippy::large_enum_variant,
    reason = "few exist at a time, and their size depends on the features of syn"
)]
pub(crate) enum Constraint {
    Min(Expr),
    Max(Expr),
    Length {
        min: Option<Expr>,
        max: Option<Expr>,
    },
    Pattern(Expr),
    OneOf(Vec<Expr>),
    Custom(ExprPath),
    JsonSchema(Expr),
}

/// The variable with the value to check.
pub(crate) const VALUE: &str = "value";

const LENGTH: KnownAttributes = KnownAttributes::new("`length`", "min max");

impl Constraint {
    /// Parses a constraint, if `word` names one.
    pub(crate) fn parse(word: &str, meta: &ParseNestedMeta<'_>) -> Result<Option<Self>> {
        Ok(Some(match word {
            "min" => Self::Min(expression(meta)?),
            "max" => Self::Max(expression(meta)?),
            "length" => Self::parse_length(meta)?,
            "pattern" => Self::Pattern(expression(meta)?),
            "one_of" => Self::OneOf(list_of(
                meta,
                "`one_of` requires at least one value\nhelp: write `one_of(1, 2)`",
            )?),
            "custom" => Self::parse_custom(meta)?,
            "json_schema" => Self::JsonSchema(expression(meta)?),
            _ => return Ok(None),
        }))
    }

    fn parse_length(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let (mut min, mut max) = (None, None);
        let mut seen = SeenAttributes::default();
        let message =
            "`length` requires a bound\nhelp: write `length(min = 1)`, `length(max = 9)` or both";
        nested(meta, message, |meta| {
            let bound = match LENGTH.word(&meta, &mut seen)?.as_str() {
                "min" => &mut min,
                _ => &mut max,
            };
            *bound = Some(expression(&meta)?);
            Ok(())
        })?;
        Ok(Self::Length { min, max })
    }

    fn parse_custom(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        match expression(meta)? {
            Expr::Path(path) => Ok(Self::Custom(path)),
            other => error_at(
                other,
                "`custom` requires the path of a function\nhelp: write a function `fn(&T) -> Result<(), String>`",
            ),
        }
    }

    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Min(_) => "min",
            Self::Max(_) => "max",
            Self::Length { .. } => "length",
            Self::Pattern(_) => "pattern",
            Self::OneOf(_) => "one_of",
            Self::Custom(_) => "custom",
            Self::JsonSchema(_) => "json_schema",
        }
    }

    /// Why the constraint does not apply to a type of this shape, if that is known.
    pub(crate) fn unsupported(&self, shape: Shape) -> Option<&'static str> {
        use Shape::{Bool, Decimal, Float, Integer, List, Map, Set, Text, Unknown, Uuid};
        match (self, shape) {
            (Self::Min(_) | Self::Max(_), Text | List | Map | Set) => Some(
                "applies to numbers and times\nhelp: to limit the length, use `length(min = .., max = ..)`",
            ),
            (Self::Min(_) | Self::Max(_), Bool | Uuid) => Some("applies to numbers and times"),
            (Self::Length { .. }, Integer | Float | Decimal) => Some(
                "applies to text, bytes and collections\nhelp: to limit a number, use `min` and `max`",
            ),
            (Self::Length { .. }, Bool | Uuid) => Some("applies to text, bytes and collections"),
            (Self::Pattern(_), shape) if !matches!(shape, Text | Unknown) => {
                Some("applies to text")
            }
            (Self::OneOf(_), List | Map | Set) => {
                Some("applies to single values\nhelp: to check the elements, use `custom`")
            }
            (Self::JsonSchema(_), shape) if shape != Unknown => {
                Some("applies to fields of type `Json`")
            }
            _ => None,
        }
    }

    /// The first expression; errors of the constraint are reported there.
    fn span(&self) -> Span {
        match self {
            Self::Min(expr) | Self::Max(expr) | Self::Pattern(expr) | Self::JsonSchema(expr) => {
                expr.span()
            }
            Self::Length { min, max } => min.as_ref().or(max.as_ref()).span(),
            Self::OneOf(values) => values.first().span(),
            Self::Custom(path) => path.span(),
        }
    }

    /// A statement that returns an error if [`VALUE`], a reference, is invalid.
    pub(crate) fn check(&self, krate: &Path, shape: Shape, ty: &Type) -> TokenStream {
        let span = generated_at(self.span());
        let value = Ident::new(VALUE, span);
        let module = quote!(#krate::model::constraint);
        match self {
            Self::Min(bound) | Self::Max(bound) => {
                let (word, bound) = (Ident::new(self.word(), span), shape.value(ty, bound));
                quote_spanned!(span=> #module::#word::<#ty>(#value, #bound)?;)
            }
            Self::Length { min, max } => {
                let (min, max) = (option(min.as_ref()), option(max.as_ref()));
                quote_spanned!(span=> #module::length(#value, #min, #max)?;)
            }
            Self::Pattern(pattern) => quote_spanned!(span=> #module::pattern(#value, #pattern)?;),
            // Text is compared with `&str`, so that constants can be used.
            Self::OneOf(allowed) if shape == Shape::Text => {
                quote_spanned!(span=> #module::one_of::<#ty, &str>(#value, &[#(#allowed),*])?;)
            }
            Self::OneOf(allowed) => {
                let allowed = allowed.iter().map(|expr| shape.value(ty, expr));
                quote_spanned!(span=> #module::one_of::<#ty, #ty>(#value, &[#(#allowed),*])?;)
            }
            Self::Custom(function) => {
                quote_spanned!(span=> #function(#value).map_err(#krate::model::Invalid::new)?;)
            }
            Self::JsonSchema(schema) => {
                quote_spanned!(span=> #module::json_schema(#value, #schema)?;)
            }
        }
    }

    /// An expression for the bound as a number of the store; `None` for every other constraint.
    pub(crate) fn bound(&self, krate: &Path, shape: Shape, ty: &Type) -> TokenStream {
        match self {
            Self::Min(bound) | Self::Max(bound) => {
                let (span, bound) = (generated_at(self.span()), shape.value(ty, bound));
                quote_spanned!(span=> #krate::model::support::bound::<#ty>(&#bound))
            }
            _ => quote!(::core::option::Option::None),
        }
    }

    /// A call that adds the constraint to the JSON Schema of the field. `None` if a schema cannot express it.
    pub(crate) fn describe(&self, shape: Shape, ty: &Type, is_serde: bool) -> Option<TokenStream> {
        let span = generated_at(self.span());
        match self {
            Self::Min(bound) | Self::Max(bound) if !is_serde => {
                let (keyword, bound) = (format!("{}imum", self.word()), shape.value(ty, bound));
                Some(quote_spanned!(span=> .keyword::<#ty>(#keyword, #bound)))
            }
            Self::Length { min, max } => {
                let (min, max) = (option(min.as_ref()), option(max.as_ref()));
                Some(quote_spanned!(span=> .length(#min, #max)))
            }
            Self::Pattern(pattern) => Some(quote_spanned!(span=> .pattern(#pattern))),
            Self::OneOf(allowed) if !is_serde => {
                let allowed = allowed.iter().map(|expr| match shape {
                    Shape::Text => {
                        quote_spanned!(span=> <#ty as ::core::convert::From<&str>>::from(#expr))
                    }
                    shape => shape.value(ty, expr),
                });
                Some(quote_spanned!(span=> .one_of::<#ty>(&[#(#allowed),*])))
            }
            Self::JsonSchema(schema) => Some(quote_spanned!(span=> .document(#schema))),
            Self::Min(_) | Self::Max(_) | Self::OneOf(_) | Self::Custom(_) => None,
        }
    }
}

/// Rejects a minimum greater than the maximum, if both are integer literals.
pub(crate) fn check_bounds(constraints: &[Constraint]) -> Result<()> {
    let (mut min, mut max) = (None, None);
    for constraint in constraints {
        match constraint {
            Constraint::Min(bound) => min = Some(bound),
            Constraint::Max(bound) => max = Some(bound),
            Constraint::Length { min, max } => check_order(min.as_ref(), max.as_ref())?,
            _ => {}
        }
    }
    check_order(min, max)
}

fn check_order(min: Option<&Expr>, max: Option<&Expr>) -> Result<()> {
    let (Some(min), Some(max)) = (min, max) else {
        return Ok(());
    };
    match (whole_number(min), whole_number(max)) {
        (Some(low), Some(high)) if low > high => error_at(
            max,
            format!("the minimum is greater than the maximum: min={low} max={high}"),
        ),
        _ => Ok(()),
    }
}
