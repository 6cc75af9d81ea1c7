//! Values that patterns keep with a database: one of each type, created by default on first use.

use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Values of different types, found by their type. A linked list: there are few values, so a linear search is fast.
#[derive(Clone, Default)]
pub(crate) struct Settings(OnceLock<Box<Setting>>);

#[derive(Clone)]
struct Setting {
    value: Arc<dyn Any + Send + Sync>,
    rest: Settings,
}

impl Settings {
    /// Returns the settings with this value, which replaces another of its type.
    pub(crate) fn with<T: Any + Send + Sync>(&self, value: T) -> Self {
        let mut settings = Self::default().before(Arc::new(value));
        let mut rest = self;
        while let Some(setting) = rest.0.get() {
            if !setting.value.is::<T>() {
                settings = settings.before(setting.value.clone());
            }
            rest = &setting.rest;
        }
        settings
    }

    /// Returns the value of this type, and inserts the default if there is none.
    pub(crate) fn get<T: Any + Default + Send + Sync>(&self) -> &T {
        let mut rest = self;
        loop {
            let setting = rest.0.get_or_init(|| {
                Box::new(Setting {
                    value: Arc::new(T::default()),
                    rest: Self::default(),
                })
            });
            if let Some(value) = setting.value.downcast_ref() {
                return value;
            }
            rest = &setting.rest;
        }
    }

    /// Prepends a value.
    fn before(self, value: Arc<dyn Any + Send + Sync>) -> Self {
        let first = Setting { value, rest: self };
        Self(OnceLock::from(Box::new(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct First(u8);

    #[derive(Debug, Default, PartialEq)]
    struct Second(u8);

    #[test]
    fn settings_are_found_by_their_type() {
        let none = Settings::default();
        let both = none.with(First(1)).with(Second(2));
        assert_eq!((both.get(), both.get()), (&First(1), &Second(2)));
        let other = both.with(First(3));
        assert_eq!((other.get(), other.get()), (&First(3), &Second(2)));
        assert_eq!(both.get::<First>(), &First(1));
    }

    #[test]
    fn default_is_created_once_and_shared_with_later_clones() {
        let settings = Settings::default();
        let first: *const First = settings.get();
        let copy = settings.clone();
        assert!(std::ptr::eq(first, settings.get::<First>()));
        assert!(std::ptr::eq(first, copy.get::<First>()));
        assert_eq!(copy.get::<Second>(), &Second(0));
    }
}
