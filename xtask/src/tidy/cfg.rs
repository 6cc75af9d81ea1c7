//! Decides which attributes make an item test code.
//!
//! An item is test code if a build without `test` never contains it: `#[cfg(test)]`,
//! `#[cfg(all(test, unix))]`, `#[test]`. It is product code if any other build may contain it:
//! `#[cfg(any(test, feature = "x"))]`, `#[cfg(not(test))]`.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// Whether one of the attributes excludes the item from every build without tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if path.is_ident("cfg") {
            let condition = attribute.parse_args::<Meta>();
            return condition.is_ok_and(|condition| value(&condition) == Some(false));
        }
        // `#[test]`, `#[tokio::test]`.
        path.segments
            .last()
            .is_some_and(|last| last.ident == "test")
    })
}

/// The value of a condition in a build without `test`; `None` if it depends on the build.
fn value(condition: &Meta) -> Option<bool> {
    match condition {
        Meta::Path(path) => (path.is_ident("test") || path.is_ident("doctest")).then_some(false),
        Meta::NameValue(_) => None,
        Meta::List(list) => {
            let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let values: Vec<_> = inner.ok()?.iter().map(value).collect();
            if list.path.is_ident("all") {
                all(&values, true)
            } else if list.path.is_ident("any") {
                all(&values, false)
            } else if list.path.is_ident("not") {
                values.first().copied().flatten().map(|value| !value)
            } else {
                None
            }
        }
    }
}

/// Evaluates `all` for `unit = true`, `any` for `unit = false`.
fn all(values: &[Option<bool>], unit: bool) -> Option<bool> {
    if values.contains(&Some(!unit)) {
        Some(!unit)
    } else if values.contains(&None) {
        None
    } else {
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attribute: &str, expected: bool) {
        let item: syn::ItemStruct = syn::parse_str(&format!("{attribute} struct S;")).unwrap();
        assert_eq!(is_test(&item.attrs), expected, "{attribute}");
    }

    #[test]
    fn item_only_in_test_builds_is_test_code() {
        check("#[cfg(test)]", true);
        check("#[cfg(all(test, unix))]", true);
        check("#[cfg(all(unix, any(test, doctest)))]", true);
        check("#[cfg(not(not(test)))]", true);
        check("#[test]", true);
        check("#[tokio::test(flavor = \"multi_thread\")]", true);
    }

    #[test]
    fn item_possible_in_other_builds_is_product_code() {
        check("#[cfg(any(test, feature = \"x\"))]", false);
        check("#[cfg(not(test))]", false);
        check("#[cfg(not(all(test, unix)))]", false);
        check("#[cfg(unix)]", false);
        check("#[cfg(feature = \"test\")]", false);
        check("#[cfg_attr(test, derive(Debug))]", false);
        check("#[must_use]", false);
    }
}
