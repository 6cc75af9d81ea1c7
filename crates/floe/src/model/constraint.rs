//! Constraints: what a field may hold beyond its type. The derive calls one function for each.
//!
//! Each tells by an [`Invalid`] what is wrong. None of them repeats text, which may be long or private; the
//! error names the field.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::{Debug, Display};
use std::sync::{Arc, PoisonError, RwLock};

use floe_store::Text;
use regex_lite::Regex;

use crate::attribute::{Bytes, Invalid};

/// Refuses what does not hold, for this reason.
fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), Invalid> {
    holds.then_some(()).ok_or_else(|| Invalid::new(reason()))
}

/// Refuses a value below `min`, and one that cannot be compared with it.
///
/// # Errors
///
/// When it is refused.
#[expect(clippy::needless_pass_by_value, reason = "a bound is a literal")]
pub fn min<T: PartialOrd + Display>(value: &T, min: T) -> Result<(), Invalid> {
    let reason = || format!("the value is below the minimum: value={value} min={min}");
    require(*value >= min, reason)
}

/// Refuses a value above `max`, and one that cannot be compared with it.
///
/// # Errors
///
/// When it is refused.
#[expect(clippy::needless_pass_by_value, reason = "a bound is a literal")]
pub fn max<T: PartialOrd + Display>(value: &T, max: T) -> Result<(), Invalid> {
    let reason = || format!("the value is above the maximum: value={value} max={max}");
    require(*value <= max, reason)
}

/// Something that has a length.
pub trait Length {
    /// The characters of a text, the elements of a collection, the bytes of bytes.
    fn length(&self) -> usize;
}

impl Length for str {
    fn length(&self) -> usize {
        self.chars().count()
    }
}

macro_rules! lengths {
    ($([$($parameter:ident)*] $type:ty => |$own:ident| $length:expr;)*) => {$(
        impl<$($parameter),*> Length for $type {
            fn length(&self) -> usize {
                let $own = self;
                $length
            }
        }
    )*};
}

lengths! {
    [] String => |text| text.as_str().length();
    [] Text => |text| text.as_str().length();
    [] Bytes => |bytes| bytes.0.len();
    [T] [T] => |list| list.len();
    [T] Vec<T> => |list| list.len();
    [K V] BTreeMap<K, V> => |map| map.len();
    [K V S] HashMap<K, V, S> => |map| map.len();
    [T] BTreeSet<T> => |set| set.len();
    [T S] HashSet<T, S> => |set| set.len();
}

/// Refuses a value that is shorter or longer.
///
/// # Errors
///
/// When it is refused.
pub fn length<T: Length + ?Sized>(
    value: &T,
    min: Option<usize>,
    max: Option<usize>,
) -> Result<(), Invalid> {
    let length = value.length();
    let min = min.unwrap_or(0);
    let too_short = || format!("the value is too short: length={length} min={min}");
    require(length >= min, too_short)?;
    let max = max.unwrap_or(usize::MAX);
    let too_long = || format!("the value is too long: length={length} max={max}");
    require(length <= max, too_long)
}

/// What is compiled once and kept as long as the program runs, by its source.
struct Kept<T>(RwLock<BTreeMap<&'static str, Arc<T>>>);

impl<T> Kept<T> {
    const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    /// Nothing in here is left half done, so a panic elsewhere has spoilt nothing.
    fn get(
        &self,
        source: &'static str,
        compile: impl FnOnce() -> Result<T, Invalid>,
    ) -> Result<Arc<T>, Invalid> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept.get(source) {
            return Ok(Arc::clone(compiled));
        }
        drop(kept);
        let compiled = Arc::new(compile()?);
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(kept.entry(source).or_insert(compiled)))
    }
}

/// Refuses a text in which the regular expression matches nowhere. `^` and `$` bind it to the ends.
///
/// # Errors
///
/// When it is refused, or the pattern is no regular expression.
pub fn pattern(value: &str, pattern: &'static str) -> Result<(), Invalid> {
    static PATTERNS: Kept<Regex> = Kept::new();
    let regex = PATTERNS.get(pattern, || {
        Regex::new(pattern).map_err(|error| {
            let reason = "the pattern of the field is no regular expression";
            Invalid::new(format!("{reason}: pattern={pattern:?} error={error}"))
        })
    })?;
    let reason = || format!("the text does not match the pattern: pattern={pattern:?}");
    require(regex.is_match(value), reason)
}

/// Refuses a value that is none of these.
///
/// # Errors
///
/// When it is refused.
pub fn one_of<T: PartialEq<U>, U: Debug>(value: &T, allowed: &[U]) -> Result<(), Invalid> {
    let reason = || format!("the value is none of those allowed: allowed={allowed:?}");
    require(allowed.iter().any(|allowed| value == allowed), reason)
}

/// Checks a value that may be absent: what is absent is always allowed.
///
/// # Errors
///
/// Those of the check.
pub fn optional<T>(
    value: &Option<T>,
    check: impl FnOnce(&T) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    value.as_ref().map_or(Ok(()), check)
}

/// Refuses a document that the JSON Schema does not allow. The schema refers to nothing outside itself:
/// nothing is fetched.
///
/// # Errors
///
/// When it is refused, with the path to the first part that is wrong, or when the schema is none.
#[cfg(feature = "json-schema")]
pub fn json_schema(value: &serde_json::Value, schema: &'static str) -> Result<(), Invalid> {
    static SCHEMAS: Kept<jsonschema::Validator> = Kept::new();
    let validator = SCHEMAS.get(schema, || {
        let no_schema = |error: String| {
            let reason = "the schema of the field is no json schema";
            Invalid::new(format!("{reason}: error={error}"))
        };
        let schema = serde_json::from_str(schema).map_err(|error| no_schema(error.to_string()))?;
        jsonschema::validator_for(&schema).map_err(|error| no_schema(error.to_string()))
    })?;
    validator.validate(value).map_err(|error| {
        let (reason, rule) = (error.masked(), error.schema_path());
        let invalid = Invalid::new(format!("the document does not fit: {reason} rule={rule}"));
        invalid.within(&path_in(value, error.instance_path().as_str()))
    })
}

/// A JSON pointer as the paths of [`Invalid`] are written. Only the document tells a position in a list
/// from a name of digits.
#[cfg(feature = "json-schema")]
fn path_in(document: &serde_json::Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut part = Some(document);
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        part = match part {
            Some(serde_json::Value::Array(list)) => {
                path.push_str(&format!("[{name}]"));
                name.parse::<usize>().ok().and_then(|at| list.get(at))
            }
            other => {
                path.push_str(&format!(".{name}"));
                other.and_then(|object| object.get(&name))
            }
        };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(checked: Result<(), Invalid>) -> String {
        checked.unwrap_err().to_string()
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(min(&1, 1), Ok(()));
        assert_eq!(max(&1, 1), Ok(()));
        assert_eq!(
            reason(min(&0, 1)),
            "the value is below the minimum: value=0 min=1"
        );
        assert_eq!(
            reason(max(&2, 1)),
            "the value is above the maximum: value=2 max=1"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(min(&f64::NAN, 0.0).is_err());
        assert!(max(&f64::NAN, 0.0).is_err());
    }

    #[test]
    fn lengths_are_those_that_people_count() {
        assert_eq!("héé".length(), 3);
        assert_eq!(Text::from("ü").length(), 1);
        assert_eq!(Bytes("ü".into()).length(), 2);
        assert_eq!(vec![(), ()].length(), 2);
        assert_eq!(BTreeMap::from([(1, 2)]).length(), 1);
        assert_eq!(HashMap::from([(1, 2)]).length(), 1);
        assert_eq!(BTreeSet::from([1, 2]).length(), 2);
        assert_eq!(HashSet::from([1, 2]).length(), 2);
    }

    #[test]
    fn lengths_have_either_bound_or_both() {
        assert_eq!(length("ab", None, None), Ok(()));
        assert_eq!(length("ab", Some(2), Some(2)), Ok(()));
        assert_eq!(
            reason(length("ab", Some(3), None)),
            "the value is too short: length=2 min=3"
        );
        assert_eq!(
            reason(length(&vec![1, 2], None, Some(1))),
            "the value is too long: length=2 max=1"
        );
    }

    #[test]
    fn patterns_match_anywhere_unless_bound() {
        assert_eq!(pattern("xa1", "[a-z][0-9]"), Ok(()));
        assert_eq!(
            reason(pattern("xa1", "^[a-z][0-9]$")),
            "the text does not match the pattern: pattern=\"^[a-z][0-9]$\""
        );
        assert!(reason(pattern("x", "(")).starts_with("the pattern of the field is no regular"));
    }

    #[test]
    fn a_pattern_is_compiled_once() {
        let kept = Kept::<u8>::new();
        assert_eq!(kept.get("a", || Ok(1)).as_deref(), Ok(&1));
        assert_eq!(
            kept.get("a", || Err(Invalid::new("compiled again")))
                .as_deref(),
            Ok(&1)
        );
        assert_eq!(
            kept.get("b", || Err(Invalid::new("no"))),
            Err(Invalid::new("no"))
        );
        assert_eq!(kept.get("b", || Ok(2)).as_deref(), Ok(&2));
    }

    #[test]
    fn one_of_compares_with_other_types() {
        assert_eq!(one_of(&"red".to_owned(), &["red", "blue"]), Ok(()));
        assert_eq!(
            reason(one_of(&"green".to_owned(), &["red", "blue"])),
            "the value is none of those allowed: allowed=[\"red\", \"blue\"]"
        );
    }

    #[test]
    fn absence_is_allowed() {
        assert_eq!(optional(&None, |value| min(value, 3)), Ok(()));
        assert_eq!(optional(&Some(3), |value| min(value, 3)), Ok(()));
        assert!(optional(&Some(2), |value| min(value, 3)).is_err());
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn documents_are_checked_against_their_schema() {
        use serde_json::json;

        const SCHEMA: &str = r#"{
            "type": "object",
            "properties": {"lines": {"type": "array", "items": {"required": ["sku"]}}}
        }"#;
        assert_eq!(json_schema(&json!({"lines": [{"sku": 1}]}), SCHEMA), Ok(()));
        let invalid = json_schema(&json!({"lines": [{"sku": 1}, {}]}), SCHEMA).unwrap_err();
        assert_eq!(invalid.path(), ".lines[1]");
        assert_eq!(
            invalid.reason(),
            "the document does not fit: \"sku\" is a required property \
             rule=/properties/lines/items/required"
        );
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn values_do_not_show_in_the_refusals_of_a_schema() {
        let secret = serde_json::json!({"a/b": "secret"});
        let schema = r#"{"additionalProperties": {"type": "integer"}}"#;
        let invalid = json_schema(&secret, schema).unwrap_err();
        assert_eq!(invalid.path(), ".a/b");
        assert!(!invalid.reason().contains("secret"), "{invalid}");
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn a_schema_that_is_none_is_refused_and_nothing_is_fetched() {
        let null = serde_json::Value::Null;
        for schema in [
            "{",
            r#"{"type": 7}"#,
            r#"{"$ref": "http://localhost:1/schema"}"#,
        ] {
            let reason = reason(json_schema(&null, schema));
            assert!(
                reason.starts_with("the schema of the field is no json schema"),
                "{reason}"
            );
        }
    }
}
