//! Reads the members of requests, each of the type that DynamoDB has declared for it.
//!
//! A request is declared with [`members!`]: the names of its members and their types. What is `null` is absent,
//! what is not declared is passed over, and what is of another type refuses the request in the words of
//! DynamoDB's framework, which say what was found and, for arrays, the Java class that was expected.

use std::borrow::Cow;

use floe_store::json::{Found, Layer, Reader, Token, Unreadable, read_flag, read_text};

use super::refusal::{Refusal, Result};

/// Where a value stands, on which depends how a wrong one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// As a member of a structure.
    Member,
    /// As an element of a list or a value of a map.
    Element,
}

/// A type that can be read.
pub(crate) trait Read<'a>: Sized {
    /// The Java type that an array in its place is refused for, unless it depends on other types.
    const CLASS: &'static str = "";

    /// The Java type that an array in its place is refused for.
    fn class() -> String {
        Self::CLASS.to_owned()
    }

    /// Reads a value, which is not `null`.
    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self>;

    /// What stands for an absent element of a list or map.
    fn absent() -> Option<Self> {
        None
    }
}

/// Text, borrowed from the request where it has no escapes.
pub(crate) type Str<'a> = Cow<'a, str>;

/// Names and what they stand for, in the order of the request. A name that comes again replaces what it stood for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map<'a, T>(pub(crate) Vec<(Str<'a>, T)>);

/// Reads a member: `null` is as good as none.
pub(crate) fn member<'a, T: Read<'a>>(reader: &mut Reader<'a>) -> Result<Option<T>> {
    read_or_null(reader, Place::Member)
}

fn read_or_null<'a, T: Read<'a>>(reader: &mut Reader<'a>, place: Place) -> Result<Option<T>> {
    match skip_null(reader)? {
        true => Ok(None),
        false => T::read(reader, place).map(Some),
    }
}

/// Reads `null`, if that comes next.
pub(crate) fn skip_null(reader: &mut Reader<'_>) -> Result<bool> {
    let is_null = reader.peek()? == Token::Null;
    if is_null {
        reader.null()?;
    }
    Ok(is_null)
}

/// A structure of the protocol, which [`members!`] declares.
pub(crate) trait Members<'a> {
    /// Reads the value of a member. Returns whether there is a member of this name.
    fn read_member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<bool>;

    /// Reads all members of an object, and passes over what is none.
    fn read_members(
        &mut self,
        reader: &mut Reader<'a>,
        place: Place,
        class: impl Fn() -> String,
    ) -> Result<()> {
        begin_structure(reader, place, class)?;
        while let Some(name) = reader.next_name()? {
            if !self.read_member(&name, reader)? {
                reader.skip()?;
            }
        }
        Ok(())
    }
}

/// Goes into an object, or refuses what stands in its place.
pub(crate) fn begin_structure(
    reader: &mut Reader<'_>,
    place: Place,
    class: impl Fn() -> String,
) -> Result<()> {
    match reader.peek()? {
        Token::Object => Ok(reader.begin_object()?),
        Token::Array => Err(no_structure(Found::Array, place, &class())),
        _ => Err(no_structure(Found::Null, place, "")),
    }
}

/// Refuses what stands in the place of an object of this class.
pub(crate) fn no_structure(found: Found, place: Place, class: &str) -> Refusal {
    match (found, place) {
        (Found::Array, _) => unrecognized(class),
        (_, Place::Member) => Refusal::shape("Unexpected field type"),
        (_, Place::Element) => Refusal::shape("Unexpected value type in payload"),
    }
}

/// Refuses a scalar that stands where an element of a list or a map must be a list or a map itself: there the
/// framework stumbles over the type that it expects.
pub(crate) fn check_parameterized(reader: &mut Reader<'_>, place: Place) -> Result<()> {
    let is_scalar = !matches!(reader.peek()?, Token::Object | Token::Array);
    if place == Place::Element && is_scalar {
        return Err(Refusal::shape(
            "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class \
             java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are \
             in module java.base of loader 'bootstrap')",
        ));
    }
    Ok(())
}

/// An array in the place of this type.
pub(crate) fn unrecognized(class: &str) -> Refusal {
    Refusal::shape(format!("Unrecognized collection type {class}"))
}

/// An object where none can be.
pub(crate) fn unexpected_object() -> Refusal {
    Refusal::shape("Start of structure or map found where not expected")
}

/// What stands in the place of a scalar and is none of its kind.
pub(crate) fn unfit<'a, T: Read<'a>>(found: Found, kind: &str) -> Refusal {
    let found = match found {
        Found::Object => return unexpected_object(),
        Found::Array => return unrecognized(&T::class()),
        Found::Text => "STRING_VALUE",
        Found::Number { is_decimal: true } => "DECIMAL_VALUE",
        Found::Number { is_decimal: false } => "NUMBER_VALUE",
        Found::Bool(true) => "TRUE_VALUE",
        Found::Bool(false) => "FALSE_VALUE",
        Found::Null => return Refusal::Serialization(None),
    };
    Refusal::shape(format!("{found} cannot be converted to {kind}"))
}

impl<'a> Read<'a> for Str<'a> {
    const CLASS: &'static str = "class java.lang.String";

    fn read(reader: &mut Reader<'a>, _: Place) -> Result<Self> {
        Ok(read_text(reader)?)
    }
}

impl<'a> Read<'a> for bool {
    const CLASS: &'static str = "class java.lang.Boolean";

    fn read(reader: &mut Reader<'a>, _: Place) -> Result<Self> {
        read_flag(reader).map_err(|unreadable| match unreadable {
            Unreadable::Mismatch { found, .. } => unfit::<Self>(found, "Boolean"),
            unreadable => unreadable.into(),
        })
    }
}

/// Reads whole numbers; what stands behind a decimal point is cut off.
macro_rules! read_integer {
    ($type:ty, $kind:literal) => {
        impl<'a> Read<'a> for $type {
            const CLASS: &'static str = concat!("class java.lang.", $kind);

            fn read(reader: &mut Reader<'a>, _: Place) -> Result<Self> {
                if reader.peek()? != Token::Number {
                    return Err(unfit::<Self>(Found::next(reader)?, $kind));
                }
                let text = reader.number()?;
                match text.parse() {
                    Ok(number) => Ok(number),
                    // Converting saturates, as Java's does.
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

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        check_parameterized(reader, place)?;
        match reader.peek()? {
            Token::Array => reader.begin_array()?,
            Token::Object => return Err(unexpected_object()),
            _ => return Err(Refusal::shape("Unexpected field type")),
        }
        let mut elements = Self::new();
        while reader.next_element()? {
            let element = read_or_null(reader, Place::Element)?;
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

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        check_parameterized(reader, place)?;
        begin_structure(reader, Place::Member, Self::class)?;
        let mut entries: Vec<(Str<'a>, T)> = Vec::new();
        while let Some(name) = reader.next_name()? {
            let value = read_or_null(reader, Place::Element)?;
            entries.extend(value.or_else(T::absent).map(|value| (name, value)));
        }
        Ok(Self(last_of_each(entries)))
    }
}

/// Of entries with the same name the last.
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

/// Declares structures of the protocol: for each a Rust struct with an `Option` for each member, and how it is read. Members that
/// several structures have are declared once and flattened into each. A structure that stands inside of a request has a
/// class, by which an array in its place is refused.
///
/// ```text
/// members! {
///     /// What to read.
///     KeysAndAttributes<'a> as "KeysAndAttributes" {
///         "Keys" => keys: Vec<Attributes>,
///         ..projected: Projected<'a>,
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
            ) -> $crate::wire::refusal::Result<bool> {
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
                place: $crate::wire::read::Place,
            ) -> $crate::wire::refusal::Result<Self> {
                let mut members = Self::default();
                $crate::wire::read::Members::read_members(&mut members, reader, place, Self::class)?;
                Ok(members)
            }
        })?
    )+};
}

pub(crate) use members;

/// A value of any type, of which only matters that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ignored;

impl<'a> Read<'a> for Ignored {
    const CLASS: &'static str = "class java.lang.Object";

    fn read(reader: &mut Reader<'a>, _: Place) -> Result<Self> {
        reader.skip()?;
        Ok(Self)
    }
}

/// Reads a request that has no members.
pub(crate) fn empty_request(body: &str) -> Result<()> {
    let mut reader = Reader::new(body);
    match reader.peek()? {
        Token::Object => reader.skip()?,
        _ => return Err(Refusal::Serialization(None)),
    }
    Ok(reader.finish()?)
}

/// Reads a request as a whole.
pub(crate) fn request<'a, T: Members<'a> + Default>(body: &'a str) -> Result<T> {
    request_and_layer(body).map(|(request, _)| request)
}

/// Reads a request as a whole, of an operation that the newer layer validates unless the request holds what only the
/// older one reads.
pub(crate) fn request_and_layer<'a, T: Members<'a> + Default>(body: &'a str) -> Result<(T, Layer)> {
    let mut reader = Reader::new(body);
    let mut request = T::default();
    match reader.peek()? {
        Token::Object => request.read_members(&mut reader, Place::Member, String::new)?,
        _ => return Err(Refusal::Serialization(None)),
    }
    let layer = match reader.needs_older_layer {
        true => Layer::Older,
        false => Layer::Current,
    };
    reader.finish()?;
    Ok((request, layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    members! {
        /// One of everything.
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
        fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
            T::read(reader, place).map(Box::new)
        }
    }

    #[test]
    fn members_are_read_by_their_types() {
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
    fn what_is_of_another_type_is_refused_with_what_was_found() {
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
            let refusal = request::<Sample<'_>>(body).unwrap_err();
            assert_eq!(refusal, Refusal::shape(message), "body={body}");
        }
        for body in ["", "[]", "1", "{", r#"{"Text":"a"}}"#, r#"{"Text":tru}"#] {
            let refusal = request::<Sample<'_>>(body).unwrap_err();
            assert_eq!(refusal, Refusal::Serialization(None), "body={body}");
        }
    }
}
