//! Finds paths in unparsed tokens: the arguments of macros, the bodies of `macro_rules!`, the arguments of attributes.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use super::facts::Kind;

/// Calls `found` with each path in the tokens, its kind, and its line.
pub(crate) fn scan(tokens: TokenStream, found: &mut dyn FnMut(String, Kind, usize)) {
    Scan { found }.stream(tokens, "");
}

/// Returns the name without the prefix of raw identifiers.
pub(crate) fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

struct Scan<'f> {
    found: &'f mut dyn FnMut(String, Kind, usize),
}

impl Scan<'_> {
    /// `prefix` is the path before the braces of a `use`, or empty.
    fn stream(&mut self, tokens: TokenStream, prefix: &str) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Group(group) => {
                    self.stream(group.stream(), "");
                    1
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.attribute(&tokens, at).unwrap_or(1)
                }
                TokenTree::Ident(ident) => self.ident(&tokens, at, ident, prefix),
                TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
            };
        }
    }

    /// Reports the name in `#[name ..]` or `#![name ..]`. Returns the number of tokens before the arguments.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize) -> Option<usize> {
        let behind = at + 1 + usize::from(is_punct(tokens.get(at + 1), '!'));
        let Some(TokenTree::Group(group)) = tokens.get(behind) else {
            return None;
        };
        if group.delimiter() != Delimiter::Bracket {
            return None;
        }
        if let Some(TokenTree::Ident(name)) = group.stream().into_iter().next() {
            (self.found)(plain(&name), Kind::Attribute, line(&name));
        }
        Some(behind - at)
    }

    /// Reports the path or method that begins at an identifier. Returns its length in tokens.
    fn ident(&mut self, tokens: &[TokenTree], at: usize, ident: &Ident, prefix: &str) -> usize {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        if is_punct(before(1), '\'') {
            return 1;
        }
        if is_punct(before(1), '.') && !is_punct(before(2), '.') {
            let is_call = matches!(tokens.get(at + 1), Some(TokenTree::Group(group))
                if group.delimiter() == Delimiter::Parenthesis)
                || is_punct(tokens.get(at + 1), ':');
            if is_call {
                (self.found)(plain(ident), Kind::Method, line(ident));
            }
            return 1;
        }
        let is_variable = is_punct(before(1), '$') && ident != "crate";
        let mut path = String::new();
        if is_punct(before(1), ':') && is_punct(before(2), ':') {
            match before(3) {
                // `<T as Trait>::Name`, `$type::Name`
                Some(TokenTree::Punct(punct)) if punct.as_char() == '>' => return 1,
                Some(TokenTree::Ident(_)) => return 1,
                _ => path.push_str("::"),
            }
        }
        if !prefix.is_empty() {
            path = format!("{prefix}::");
        }
        path += &plain(ident);
        let mut next = at + 1;
        while is_punct(tokens.get(next), ':') && is_punct(tokens.get(next + 1), ':') {
            match tokens.get(next + 2) {
                Some(TokenTree::Ident(segment)) => {
                    path = format!("{path}::{}", plain(segment));
                    next += 3;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.stream(group.stream(), &path);
                    return next + 3 - at;
                }
                _ => break,
            }
        }
        if !is_variable {
            let is_macro = is_punct(tokens.get(next), '!') && !is_punct(tokens.get(next + 1), '=');
            let kind = if is_macro { Kind::Macro } else { Kind::Any };
            (self.found)(path, kind, line(ident));
        }
        next - at
    }
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn line(ident: &Ident) -> usize {
    ident.span().start().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tokens: &str, expected: &[&str]) {
        let mut found = Vec::new();
        scan(tokens.parse().unwrap(), &mut |path, kind, _| {
            found.push(match kind {
                Kind::Macro => format!("{path}!"),
                Kind::Method => format!(".{path}"),
                Kind::Attribute => format!("#{path}"),
                _ => path,
            });
        });
        assert_eq!(found, expected, "{tokens}");
    }

    #[test]
    fn paths_methods_macros_and_attributes_are_reported() {
        check(
            "crate::a::b(x.c(), y.field)",
            &["crate::a::b", "x", ".c", "y"],
        );
        check(
            "$crate::a::B { c: 0..limit }",
            &["crate::a::B", "c", "limit"],
        );
        check("vec![a::b!(1), c != d]", &["vec!", "a::b!", "c", "d"]);
        check("#[ignore] fn f() {}", &["#ignore", "ignore", "fn", "f"]);
        check(
            "::std::time::Instant::now()",
            &["::std::time::Instant::now"],
        );
        check("Vec::<a::B>::new()", &["Vec", "a::B"]);
        check("use a::{b, c::d};", &["use", "a::b", "a::c::d"]);
    }

    #[test]
    fn lifetimes_and_macro_variables_are_not_paths() {
        check("&'a $name", &[]);
        check("$type::new", &[]);
        check("<$type as Trait>::f", &["as", "Trait"]);
    }
}
