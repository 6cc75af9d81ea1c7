//! Parses request members as the types that DynamoDB declares for them.
//!
//! A request is declared with [`members!`]: the names and types of its members. `null` counts as absent, and undeclared
//! members are skipped. A member of another type is rejected with the message of DynamoDB's framework, which contains
//! the type found and, for arrays, the expected Java class.

use std::borrow::Cow;

use floe_store::json::{Found, ReadError, Reader, Token, ValidationLayer, read_flag, read_text};

use super::request_error::{RequestError, Result};

/// The context of a value, which determines the error message for a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueContext {
    /// A member of a structure.
    Member,
    /// An element of a list or a value of a map.
    Element,
}

/// A type that can be parsed.
pub(crate) trait Read<'a>: Sized {
    /// The Java type in the error message for an array, unless it depends on other types.
    const CLASS: &'static str = "";

    /// Returns the Java type in the error message for an array.
    fn class() -> String {
        Self::CLASS.to_owned()
    }

    /// Parses a value that is not `null`.
    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self>;

    /// Returns the value that represents `null` in a list or map.
    fn absent() -> Option<Self> {
        None
    }
}

/// Text, borrowed from the request where it has no escapes.
pub(crate) type Str<'a> = Cow<'a, str>;

/// A JSON object in the order of the request. A repeated name replaces the earlier value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map<'a, T>(pub(crate) Vec<(Str<'a>, T)>);

/// Parses a member. `null` counts as absent.
pub(crate) fn member<'a, T: Read<'a>>(reader: &mut Reader<'a>) -> Result<Option<T>> {
    read_or_null(reader, ValueContext::Member)
}

fn read_or_null<'a, T: Read<'a>>(
    reader: &mut Reader<'a>,
    context: ValueContext,
) -> Result<Option<T>> {
    if skip_null(reader)? {
        Ok(None)
    } else {
        T::read(reader, context).map(Some)
    }
}

/// Skips `null`. Returns whether it was there.
pub(crate) fn skip_null(reader: &mut Reader<'_>) -> Result<bool> {
    let is_null = reader.peek()? == Token::Null;
    if is_null {
        reader.null()?;
    }
    Ok(is_null)
}

/// A structure of the protocol, declared by [`members!`].
pub(crate) trait Members<'a> {
    /// Parses the value of a member. Returns whether the member is declared.
    fn read_member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<bool>;

    /// Parses the members of an object, skipping undeclared ones.
    fn read_members(
        &mut self,
        reader: &mut Reader<'a>,
        context: ValueContext,
        class: impl Fn() -> String,
    ) -> Result<()> {
        begin_structure(reader, context, class)?;
        while let Some(name) = reader.next_name()? {
            if !self.read_member(&name, reader)? {
                reader.skip()?;
            }
        }
        Ok(())
    }
}

/// Enters an object, or rejects a value of another type.
pub(crate) fn begin_structure(
    reader: &mut Reader<'_>,
    context: ValueContext,
    class: impl Fn() -> String,
) -> Result<()> {
    match reader.peek()? {
        Token::Object => Ok(reader.begin_object()?),
        Token::Array => Err(not_an_object(Found::Array, context, &class())),
        _ => Err(not_an_object(Found::Null, context, "")),
    }
}

/// Returns the error for a value that is not an object of this class.
pub(crate) fn not_an_object(found: Found, context: ValueContext, class: &str) -> RequestError {
    match (found, context) {
        (Found::Array, _) => unexpected_array(class),
        (_, ValueContext::Member) => RequestError::wrong_type("Unexpected field type"),
        (_, ValueContext::Element) => RequestError::wrong_type("Unexpected value type in payload"),
    }
}

/// Rejects a scalar as an element of a list or map where a list or map is expected: DynamoDB's framework fails to
/// handle the parameterized type.
pub(crate) fn check_parameterized(reader: &mut Reader<'_>, context: ValueContext) -> Result<()> {
    let is_scalar = !matches!(reader.peek()?, Token::Object | Token::Array);
    if context == ValueContext::Element && is_scalar {
        return Err(RequestError::wrong_type(
            "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class \
             java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are \
             in module java.base of loader 'bootstrap')",
        ));
    }
    Ok(())
}

/// Returns the error for an array instead of this type.
pub(crate) fn unexpected_array(class: &str) -> RequestError {
    RequestError::wrong_type(format!("Unrecognized collection type {class}"))
}

/// Returns the error for an unexpected object.
pub(crate) fn unexpected_object() -> RequestError {
    RequestError::wrong_type("Start of structure or map found where not expected")
}

/// Returns the error for a value that is not a scalar of this kind.
pub(crate) fn type_mismatch<'a, T: Read<'a>>(found: Found, kind: &str) -> RequestError {
    let found = match found {
        Found::Object => return unexpected_object(),
        Found::Array => return unexpected_array(&T::class()),
        Found::Text => "STRING_VALUE",
        Found::Number { is_decimal: true } => "DECIMAL_VALUE",
        Found::Number { is_decimal: false } => "NUMBER_VALUE",
        Found::Bool(true) => "TRUE_VALUE",
        Found::Bool(false) => "FALSE_VALUE",
        Found::Null => return RequestError::Serialization(None),
    };
    RequestError::wrong_type(format!("{found} cannot be converted to {kind}"))
}

impl<'a> Read<'a> for Str<'a> {
    const CLASS: &'static str = "class java.lang.String";

    fn read(reader: &mut Reader<'a>, _: ValueContext) -> Result<Self> {
        Ok(read_text(reader)?)
    }
}

impl<'a> Read<'a> for bool {
    const CLASS: &'static str = "class java.lang.Boolean";

    fn read(reader: &mut Reader<'a>, _: ValueContext) -> Result<Self> {
        read_flag(reader).map_err(|unreadable| match unreadable {
            ReadError::Mismatch { found, .. } => type_mismatch::<Self>(found, "Boolean"),
            unreadable => unreadable.into(),
        })
    }
}

/// Parses integers. Decimals are truncated.
macro_rules! read_integer {
    ($type:ty, $kind:literal) => {
        impl<'a> Read<'a> for $type {
            const CLASS: &'static str = concat!("class java.lang.", $kind);

            fn read(reader: &mut Reader<'a>, _: ValueContext) -> Result<Self> {
                if reader.peek()? != Token::Number {
                    return Err(type_mismatch::<Self>(Found::next(reader)?, $kind));
                }
                let text = reader.number()?;
                match text.parse() {
                    Ok(number) => Ok(number),
                    // The conversion saturates, as in Java.
                    Err(_) => Ok(text.parse::<f64>().map_or(0, |number| number as $type)),
                }
            }
        }
    };
}

read_integer!(i32, "Integer");
read_integer!(i64, "Long");

impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    fn class() -> String {
        let class = T::class();
        let class = class.strip_prefix("class ").unwrap_or(&class);
        format!("java.util.List<{class}>")
    }

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        check_parameterized(reader, context)?;
        match reader.peek()? {
            Token::Array => reader.begin_array()?,
            Token::Object => return Err(unexpected_object()),
            _ => return Err(RequestError::wrong_type("Unexpected field type")),
        }
        let mut elements = Self::new();
        while reader.next_element()? {
            let element = read_or_null(reader, ValueContext::Element)?;
            elements.extend(element.or_else(T::absent));
        }
        Ok(elements)
    }
}

impl<'a, T: Read<'a>> Read<'a> for Map<'a, T> {
    fn class() -> String {
        let class = T::class();
        let class = class.strip_prefix("class ").unwrap_or(&class);
        format!("java.util.Map<java.lang.String, {class}>")
    }

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        check_parameterized(reader, context)?;
        begin_structure(reader, ValueContext::Member, Self::class)?;
        let mut entries: Vec<(Str<'a>, T)> = Vec::new();
        while let Some(name) = reader.next_name()? {
            let value = read_or_null(reader, ValueContext::Element)?;
            entries.extend(value.or_else(T::absent).map(|value| (name, value)));
        }
        Ok(Self(last_of_each(entries)))
    }
}

/// Keeps the last of several entries with the same name.
fn last_of_each<'a, T>(mut entries: Vec<(Str<'a>, T)>) -> Vec<(Str<'a>, T)> {
    let repeats = |entries: &[(Str<'a>, T)]| {
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair.first() == pair.last())
    };
    if entries.len() > 1 && repeats(&entries) {
        let mut seen = std::collections::BTreeSet::new();
        entries.reverse();
        entries.retain(|(name, _)| seen.insert(name.to_string()));
        entries.reverse();
    }
    entries
}

/// Declares structures of the protocol: a Rust struct with an `Option` for each member, and its parser. Members that
/// several structures share are declared once and flattened into each. A nested structure has a class, which appears in
/// the error for an array.
///
/// ```text
/// members! {
///     /// The items to read from one table.
///     KeysAndAttributes<'a> as "KeysAndAttributes" {
///         "Keys" => keys: Vec<Attributes>,
///         ..get_members: GetMembers<'a>,
///     }
/// }
/// ```
macro_rules! members {
    ($($(#[$doc:meta])* $name:ident<'a> $(as $class:literal)? {
        $($member:literal => $field:ident: $type:ty,)*
        $(..$shared:ident: $shared_type:ty,)*
    })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name<'a> {
            $(pub(crate) $field: Option<$type>,)*
            $(pub(crate) $shared: $shared_type,)*
            /// Text may be borrowed from the request.
            pub(crate) request: std::marker::PhantomData<&'a str>,
        }

        impl<'a> $crate::wire::read::Members<'a> for $name<'a> {
            fn read_member(
                &mut self,
                name: &str,
                reader: &mut floe_store::json::Reader<'a>,
            ) -> $crate::wire::request_error::Result<bool> {
                match name {
                    $($member => self.$field = $crate::wire::read::member(reader)?,)*
                    $(_ if $crate::wire::read::Members::read_member(&mut self.$shared, name, reader)? => {})*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        $(impl<'a> $crate::wire::read::Read<'a> for $name<'a> {
            const CLASS: &'static str = concat!("class com.amazonaws.dynamodb.v20120810.", $class);

            fn read(
                reader: &mut floe_store::json::Reader<'a>,
                context: $crate::wire::read::ValueContext,
            ) -> $crate::wire::request_error::Result<Self> {
                let mut members = Self::default();
                $crate::wire::read::Members::read_members(&mut members, reader, context, Self::class)?;
                Ok(members)
            }
        })?
    )+};
}

pub(crate) use members;

/// A value of any type, of which only its presence matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ignored;

impl<'a> Read<'a> for Ignored {
    const CLASS: &'static str = "class java.lang.Object";

    fn read(reader: &mut Reader<'a>, _: ValueContext) -> Result<Self> {
        reader.skip()?;
        Ok(Self)
    }
}

/// Parses a request without members.
pub(crate) fn empty_request(body: &str) -> Result<()> {
    let mut reader = Reader::new(body);
    match reader.peek()? {
        Token::Object => reader.skip()?,
        _ => return Err(RequestError::Serialization(None)),
    }
    Ok(reader.finish()?)
}

/// Parses a request.
pub(crate) fn request<'a, T: Members<'a> + Default>(body: &'a str) -> Result<T> {
    request_and_layer(body).map(|(request, _)| request)
}

/// Parses a request, and returns the layer that validates it: the newer one, unless the request contains forms that
/// only the older one accepts.
pub(crate) fn request_and_layer<'a, T: Members<'a> + Default>(
    body: &'a str,
) -> Result<(T, ValidationLayer)> {
    let mut reader = Reader::new(body);
    let mut request = T::default();
    match reader.peek()? {
        Token::Object => request.read_members(&mut reader, ValueContext::Member, String::new)?,
        _ => return Err(RequestError::Serialization(None)),
    }
    let layer = if reader.needs_older_layer {
        ValidationLayer::Older
    } else {
        ValidationLayer::Current
    };
    reader.finish()?;
    Ok((request, layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    members! {
        /// A structure with members of all types.
        Sample<'a> as "Sample" {
            "Text" => text: Str<'a>,
            "Flag" => flag: bool,
            "Count" => count: i32,
            "Names" => names: Vec<Str<'a>>,
            "Tags" => tags: Map<'a, Str<'a>>,
            "Inner" => inner: Box<Sample<'a>>,
            "Inners" => inners: Vec<Sample<'a>>,
            "Groups" => groups: Vec<Vec<Str<'a>>>,
        }
    }

    impl<'a, T: Read<'a>> Read<'a> for Box<T> {
        fn class() -> String {
            T::class()
        }
        fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
            T::read(reader, context).map(Box::new)
        }
    }

    #[test]
    fn members_are_parsed_by_type() {
        let sample: Sample<'_> = request(
            r#"{"Text":"a","Flag":true,"Count":7.9,"Names":["x",null,"y"],"Tags":{"k":"1","l":"2","k":"3"},
                "Inner":{"Flag":"no","Unknown":[{"a":{}}]},"Inners":[{"Count":-99999999999}],"Missing":1}"#,
        )
        .unwrap();
        assert_eq!(sample.text.as_deref(), Some("a"));
        assert_eq!(sample.flag, Some(true));
        assert_eq!(sample.count, Some(7));
        assert_eq!(sample.names.unwrap(), ["x", "y"]);
        assert_eq!(
            sample.tags.unwrap().0,
            [("l".into(), "2".into()), ("k".into(), "3".into())]
        );
        assert_eq!(sample.inner.unwrap().flag, Some(false));
        assert_eq!(sample.inners.unwrap()[0].count, Some(i32::MIN));
        let empty: Sample<'_> = request(r#"{"Text":null}"#).unwrap();
        assert_eq!(empty.text, None);
    }

    #[test]
    fn wrong_type_is_rejected_with_the_type_found() {
        for (body, message) in [
            (
                r#"{"Text":1}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":1.5}"#,
                "DECIMAL_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":true}"#,
                "TRUE_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":{}}"#,
                "Start of structure or map found where not expected",
            ),
            (
                r#"{"Text":[]}"#,
                "Unrecognized collection type class java.lang.String",
            ),
            (
                r#"{"Flag":1}"#,
                "NUMBER_VALUE cannot be converted to Boolean",
            ),
            (
                r#"{"Flag":"maybe"}"#,
                "Unexpected token received from parser",
            ),
            (
                r#"{"Count":"1"}"#,
                "STRING_VALUE cannot be converted to Integer",
            ),
            (
                r#"{"Count":false}"#,
                "FALSE_VALUE cannot be converted to Integer",
            ),
            (r#"{"Names":"x"}"#, "Unexpected field type"),
            (
                r#"{"Names":{}}"#,
                "Start of structure or map found where not expected",
            ),
            (
                r#"{"Names":[1]}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (r#"{"Tags":1}"#, "Unexpected field type"),
            (
                r#"{"Tags":[]}"#,
                "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>",
            ),
            (r#"{"Inner":"x"}"#, "Unexpected field type"),
            (
                r#"{"Inner":[]}"#,
                "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.Sample",
            ),
            (r#"{"Inners":["x"]}"#, "Unexpected value type in payload"),
            (
                r#"{"Groups":[["x"],1]}"#,
                "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class \
                 java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class \
                 are in module java.base of loader 'bootstrap')",
            ),
            (
                r#"{"Groups":[{}]}"#,
                "Start of structure or map found where not expected",
            ),
        ] {
            let error = request::<Sample<'_>>(body).unwrap_err();
            assert_eq!(error, RequestError::wrong_type(message), "body={body}");
        }
        for body in ["", "[]", "1", "{", r#"{"Text":"a"}}"#, r#"{"Text":tru}"#] {
            let error = request::<Sample<'_>>(body).unwrap_err();
            assert_eq!(error, RequestError::Serialization(None), "body={body}");
        }
    }
}
