//! Records encoded as [items](super::item) with named fields.
//!
//! Fields can be added later without a new format version: records of older versions simply lack them.

use floe_store::table::{KeyKind, StreamView};
use floe_store::{Item, Name, Timestamp, Value};

use super::change::{view_code, view_of_code};

/// A type that can be the value of a field.
pub(super) trait FieldValue: Sized {
    /// Encodes the value; `None` if the field is omitted.
    fn store(&self) -> Option<Value>;

    /// Decodes the value. `None` if it is missing or has another type, which means damage.
    fn load(value: Option<&Value>) -> Option<Self>;
}

/// A type that is stored as named fields.
pub(super) trait Record: Sized {
    /// Encodes the fields.
    fn fields(&self) -> Item;

    /// Decodes the fields; `None` if they are damaged.
    fn from_fields(fields: &Item) -> Option<Self>;
}

/// Sets a field, unless its value is omitted.
pub(super) fn put(fields: &mut Item, name: &'static str, value: &impl FieldValue) {
    if let Some(value) = value.store() {
        fields.insert(Name::new_static(name), value);
    }
}

/// Decodes a field.
pub(super) fn get<T: FieldValue>(fields: &Item, name: &str) -> Option<T> {
    T::load(fields.get(name))
}

/// Implements [`Record`] for structs: each member with the name of its field.
macro_rules! record {
    ($($record:ident { $($member:ident: $name:literal),+ $(,)? })+) => {$(
        impl Record for $record {
            fn fields(&self) -> Item {
                let mut fields = Item::new();
                $( put(&mut fields, $name, &self.$member); )+
                fields
            }

            fn from_fields(fields: &Item) -> Option<Self> {
                Some(Self { $( $member: get(fields, $name)?, )+ })
            }
        }
    )+};
}
pub(super) use record;

/// Implements [`FieldValue`] for types with a plain value: one expression to encode, one to decode.
macro_rules! field_values {
    ($($type:ty: $held:ident => $value:expr, $found:ident => $read:expr;)+) => {$(
        impl FieldValue for $type {
            fn store(&self) -> Option<Value> {
                let $held = self;
                Some(Value::from($value))
            }

            fn load(value: Option<&Value>) -> Option<Self> {
                let $found = value?;
                $read
            }
        }
    )+};
}

field_values! {
    u64: number => *number, value => value.as_n()?.to_u64();
    u32: number => *number, value => u32::try_from(value.as_n()?.to_u64()?).ok();
    Timestamp: time => time.as_millis(), value => value.as_n()?.to_u64().map(Timestamp::from_millis);
    String: text => &**text, value => value.as_s().map(str::to_owned);
    Name: name => name.as_str(), value => value.as_s().map(Self::from);
    Vec<u8>: bytes => &**bytes, value => value.as_b().map(<[u8]>::to_vec);
    KeyKind: kind => kind.as_str(), value => Self::from_name(value.as_s()?);
    StreamView: view => u32::from(view_code(*view)),
        value => view_of_code(u8::try_from(value.as_n()?.to_u64()?).ok()?);
    bool: flag => *flag, value => match value {
        Value::Bool(flag) => Some(*flag),
        _ => None,
    };
}

impl<T: Record> FieldValue for T {
    fn store(&self) -> Option<Value> {
        Some(Value::M(self.fields()))
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        Self::from_fields(value?.as_m()?)
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn store(&self) -> Option<Value> {
        self.as_ref()?.store()
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            found => T::load(found).map(Some),
        }
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    fn store(&self) -> Option<Value> {
        let elements = self.iter().filter_map(T::store);
        Some(Value::L(elements.collect()))
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        let elements = value?.as_l()?.iter();
        elements.map(|element| T::load(Some(element))).collect()
    }
}
