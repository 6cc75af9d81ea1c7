//! Constraints on the values of a field beyond its type. The derive calls one function for each.
//!
//! Each returns an [`Invalid`] with the reason. The reason never contains text values, which may be long or private; the
//! error names the field.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::{Debug, Display};
use std::sync::{Arc, PoisonError, RwLock};

use floe_store::Text;
use regex_lite::Regex;

use crate::attribute::{Bytes, Invalid};

/// Returns an error with this reason unless the condition holds.
fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), Invalid> {
    holds.then_some(()).ok_or_else(|| Invalid::new(reason()))
}

/// Rejects values below `min`, and values that cannot be compared with it.
///
/// # Errors
///
/// If the value is rejected.
#[expect(clippy::needless_pass_by_value, reason = "a bound is a literal")]
pub fn min<T: PartialOrd + Display>(value: &T, min: T) -> Result<(), Invalid> {
    let reason = || format!("the value is below the minimum: value={value} min={min}");
    require(*value >= min, reason)
}

/// Rejects values above `max`, and values that cannot be compared with it.
///
/// # Errors
///
/// If the value is rejected.
#[expect(clippy::needless_pass_by_value, reason = "a bound is a literal")]
pub fn max<T: PartialOrd + Display>(value: &T, max: T) -> Result<(), Invalid> {
    let reason = || format!("the value is above the maximum: value={value} max={max}");
    require(*value <= max, reason)
}

/// A value with a length.
pub trait Length {
    /// The number of characters, elements or bytes.
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

/// Rejects values that are too short or too long.
///
/// # Errors
///
/// If the value is rejected.
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

/// Caches compiled values by their source for the lifetime of the program.
struct CompileCache<T>(RwLock<BTreeMap<&'static str, Arc<T>>>);

impl<T> CompileCache<T> {
    const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    /// Ignores poisoning, because the map is consistent at any moment.
    fn get(
        &self,
        source: &'static str,
        compile: impl FnOnce() -> Result<T, Invalid>,
    ) -> Result<Arc<T>, Invalid> {
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = cache.get(source) {
            return Ok(Arc::clone(compiled));
        }
        drop(cache);
        let compiled = Arc::new(compile()?);
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(cache.entry(source).or_insert(compiled)))
    }
}

/// Rejects texts that the regular expression does not match anywhere. Use `^` and `$` to match the whole text.
///
/// # Errors
///
/// If the text is rejected, or the pattern is not a valid regular expression.
pub fn pattern(value: &str, pattern: &'static str) -> Result<(), Invalid> {
    static PATTERNS: CompileCache<Regex> = CompileCache::new();
    let regex = PATTERNS.get(pattern, || {
        Regex::new(pattern).map_err(|error| {
            let reason = "the pattern of the field is not a valid regular expression";
            Invalid::new(format!("{reason}: pattern={pattern:?} error={error}"))
        })
    })?;
    let reason = || format!("the text does not match the pattern: pattern={pattern:?}");
    require(regex.is_match(value), reason)
}

/// Rejects values other than these.
///
/// # Errors
///
/// If the value is rejected.
pub fn one_of<T: PartialEq<U>, U: Debug>(value: &T, allowed: &[U]) -> Result<(), Invalid> {
    let reason = || format!("the value is not one of the allowed values: allowed={allowed:?}");
    require(allowed.iter().any(|allowed| value == allowed), reason)
}

/// Checks an optional value. Absence is always allowed.
///
/// # Errors
///
/// The error of the check.
pub fn optional<T>(
    value: &Option<T>,
    check: impl FnOnce(&T) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    value.as_ref().map_or(Ok(()), check)
}

/// Rejects documents that do not match the JSON Schema. External references are not supported: nothing is fetched.
///
/// # Errors
///
/// If the document is rejected, with the path to its first invalid part, or if the schema is invalid.
#[cfg(feature = "json-schema")]
pub fn json_schema(value: &serde_json::Value, schema: &'static str) -> Result<(), Invalid> {
    static SCHEMAS: CompileCache<jsonschema::Validator> = CompileCache::new();
    let validator = SCHEMAS.get(schema, || {
        let invalid_schema = |error: String| {
            let reason = "the schema of the field is not a valid JSON Schema";
            Invalid::new(format!("{reason}: error={error}"))
        };
        let schema =
            serde_json::from_str(schema).map_err(|error| invalid_schema(error.to_string()))?;
        jsonschema::validator_for(&schema).map_err(|error| invalid_schema(error.to_string()))
    })?;
    validator.validate(value).map_err(|error| {
        let (reason, rule) = (error.masked(), error.schema_path());
        let invalid = Invalid::new(format!(
            "the document does not match its schema: {reason} rule={rule}"
        ));
        invalid.within(&path_in(value, error.instance_path().as_str()))
    })
}

/// Converts a JSON pointer to a path of [`Invalid`]. The document is needed to distinguish a list index from a name made
/// of digits.
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
    fn incomparable_values_are_rejected() {
        assert!(min(&f64::NAN, 0.0).is_err());
        assert!(max(&f64::NAN, 0.0).is_err());
    }

    #[test]
    fn text_length_counts_characters() {
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
    fn length_checks_either_bound_or_both() {
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
    fn patterns_match_anywhere_unless_anchored() {
        assert_eq!(pattern("xa1", "[a-z][0-9]"), Ok(()));
        assert_eq!(
            reason(pattern("xa1", "^[a-z][0-9]$")),
            "the text does not match the pattern: pattern=\"^[a-z][0-9]$\""
        );
        assert!(
            reason(pattern("x", "("))
                .starts_with("the pattern of the field is not a valid regular")
        );
    }

    #[test]
    fn pattern_is_compiled_once() {
        let cache = CompileCache::<u8>::new();
        assert_eq!(cache.get("a", || Ok(1)).as_deref(), Ok(&1));
        assert_eq!(
            cache
                .get("a", || Err(Invalid::new("compiled again")))
                .as_deref(),
            Ok(&1)
        );
        assert_eq!(
            cache.get("b", || Err(Invalid::new("no"))),
            Err(Invalid::new("no"))
        );
        assert_eq!(cache.get("b", || Ok(2)).as_deref(), Ok(&2));
    }

    #[test]
    fn allowed_values_compare_with_other_types() {
        assert_eq!(one_of(&"red".to_owned(), &["red", "blue"]), Ok(()));
        assert_eq!(
            reason(one_of(&"green".to_owned(), &["red", "blue"])),
            "the value is not one of the allowed values: allowed=[\"red\", \"blue\"]"
        );
    }

    #[test]
    fn optional_allows_absence() {
        assert_eq!(optional(&None, |value| min(value, 3)), Ok(()));
        assert_eq!(optional(&Some(3), |value| min(value, 3)), Ok(()));
        assert!(optional(&Some(2), |value| min(value, 3)).is_err());
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn documents_are_validated_against_their_schema() {
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
            "the document does not match its schema: \"sku\" is a required property \
             rule=/properties/lines/items/required"
        );
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn schema_errors_do_not_contain_values() {
        let secret = serde_json::json!({"a/b": "secret"});
        let schema = r#"{"additionalProperties": {"type": "integer"}}"#;
        let invalid = json_schema(&secret, schema).unwrap_err();
        assert_eq!(invalid.path(), ".a/b");
        assert!(!invalid.reason().contains("secret"), "{invalid}");
    }

    #[cfg(feature = "json-schema")]
    #[test]
    fn invalid_schema_is_rejected_and_nothing_is_fetched() {
        let null = serde_json::Value::Null;
        for schema in [
            "{",
            r#"{"type": 7}"#,
            r#"{"$ref": "http://localhost:1/schema"}"#,
        ] {
            let reason = reason(json_schema(&null, schema));
            assert!(
                reason.starts_with("the schema of the field is not a valid JSON Schema"),
                "{reason}"
            );
        }
    }
}
