//! Records as [items](super::item) of named fields.
//!
//! Fields can be added later without a new format: one that is absent is one that a record of an older version lacks.

use floe_store::table::{KeyKind, StreamView};
use floe_store::{Item, Name, Timestamp, Value};

use super::change::{view_code, view_of_code};

/// What a field of a record holds.
pub(super) trait Stored: Sized {
    /// The value of the field; `None` if it is left out.
    fn store(&self) -> Option<Value>;

    /// What a field of this value holds. `None` if it is missing or of another type, which is damage.
    fn load(value: Option<&Value>) -> Option<Self>;
}

/// What is stored as named fields.
pub(super) trait Record: Sized {
    /// The fields.
    fn fields(&self) -> Item;

    /// What has these fields; `None` for damage.
    fn of_fields(fields: &Item) -> Option<Self>;
}

/// Sets a field, unless it is left out.
pub(super) fn put(fields: &mut Item, name: &'static str, value: &impl Stored) {
    if let Some(value) = value.store() {
        fields.insert(Name::new_static(name), value);
    }
}

/// What a field holds.
pub(super) fn get<T: Stored>(fields: &Item, name: &str) -> Option<T> {
    T::load(fields.get(name))
}

/// Stores structs as named fields: each member, and the name of its field.
macro_rules! record {
    ($($record:ident { $($member:ident: $name:literal),+ $(,)? })+) => {$(
        impl Record for $record {
            fn fields(&self) -> Item {
                let mut fields = Item::new();
                $( put(&mut fields, $name, &self.$member); )+
                fields
            }

            fn of_fields(fields: &Item) -> Option<Self> {
                Some(Self { $( $member: get(fields, $name)?, )+ })
            }
        }
    )+};
}
pub(super) use record;

/// Stores types as plain values: how a value is made of one, and one of a value.
macro_rules! stored {
    ($($type:ty: $held:ident => $value:expr, $found:ident => $read:expr;)+) => {$(
        impl Stored for $type {
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

stored! {
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

impl<T: Record> Stored for T {
    fn store(&self) -> Option<Value> {
        Some(Value::M(self.fields()))
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        Self::of_fields(value?.as_m()?)
    }
}

impl<T: Stored> Stored for Option<T> {
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

impl<T: Stored> Stored for Vec<T> {
    fn store(&self) -> Option<Value> {
        let elements = self.iter().filter_map(T::store);
        Some(Value::L(elements.collect()))
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        let elements = value?.as_l()?.iter();
        elements.map(|element| T::load(Some(element))).collect()
    }
}
