//! JSON output: objects whose members are written by their types.

use std::fmt::Display;

use floe_store::Item;
use floe_store::json::Writer;

/// A value of a member of an object.
pub(crate) trait Json {
    /// Whether there is a value. Members without one are omitted.
    fn is_present(&self) -> bool {
        true
    }

    fn write(&self, w: &mut Writer);
}

/// The members of an object, by name.
pub(crate) type Members<'m> = &'m [(&'m str, &'m dyn Json)];

/// A value written as a string, by its `Display`.
pub(crate) struct AsText<T>(pub(crate) T);

/// A slice written as an array, each element by the function.
pub(crate) struct AsArray<'e, T>(pub(crate) &'e [T], pub(crate) fn(&mut Writer, &T));

/// An item, written by the function.
pub(crate) struct AsItem<'i>(pub(crate) &'i Item, pub(crate) fn(&mut Writer, &Item));

/// The members of an object: `members!["name": value, ..]`.
macro_rules! members {
    ($($name:literal: $value:expr),*) => {
        &[$(($name, &$value as &dyn $crate::out::json::Json)),*]
    };
}

/// Writes an object: `object!(w; "name": value, ..)`.
macro_rules! object {
    ($w:expr; $($members:tt)*) => {
        $w.object(|w| $crate::out::json::write_members!(w; $($members)*))
    };
}

/// Writes members of an object: `write_members!(w; "name": value, ..)`.
macro_rules! write_members {
    ($w:expr; $($members:tt)*) => {
        $crate::out::json::write($w, $crate::out::json::members![$($members)*])
    };
}

pub(crate) use {members, object, write_members};

/// Writes the members that have values.
pub(crate) fn write(w: &mut Writer, members: Members<'_>) {
    for (name, value) in members.iter().filter(|(_, value)| value.is_present()) {
        value.write(w.name(name));
    }
}

impl<T: Display> Json for AsText<T> {
    fn write(&self, w: &mut Writer) {
        w.string(&self.0.to_string());
    }
}

impl<T> Json for AsArray<'_, T> {
    fn write(&self, w: &mut Writer) {
        w.array(|w| self.0.iter().for_each(|element| (self.1)(w, element)));
    }
}

impl Json for AsItem<'_> {
    fn write(&self, w: &mut Writer) {
        (self.1)(w, self.0);
    }
}

impl<T: Json> Json for Option<T> {
    fn is_present(&self) -> bool {
        self.is_some()
    }

    fn write(&self, w: &mut Writer) {
        if let Some(value) = self {
            value.write(w);
        }
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, w: &mut Writer) {
        w.array(|w| self.iter().for_each(|element| element.write(w)));
    }
}

impl<T: Json + ?Sized> Json for &T {
    fn is_present(&self) -> bool {
        (**self).is_present()
    }

    fn write(&self, w: &mut Writer) {
        (**self).write(w);
    }
}

/// Implements [`Json`] for types.
macro_rules! json {
    ($($type:ty: $value:ident, $w:ident => $write:expr;)*) => {$(
        impl Json for $type {
            fn write(&self, $w: &mut Writer) {
                let $value = self;
                $write;
            }
        }
    )*};
}

json! {
    str: text, w => w.string(text);
    String: text, w => w.string(text);
    bool: flag, w => w.bool(*flag);
    u32: number, w => w.number(number);
    u64: number, w => w.number(number);
    usize: number, w => w.number(number);
}
