//! Setters of builders, written as the assignments that they make.

/// The setters of a builder: `pub fn poll(pause: Duration) => options.poll = pause;` takes the builder, sets the field, and
/// returns the builder.
macro_rules! setters {
    ($($(#[$doc:meta])* $vis:vis $($word:ident)+($($arg:ident: $type:ty)?) => $($field:tt).+ = $value:expr;)+) => {
        $(
            $(#[$doc])*
            #[must_use = "a setter returns the builder that it has changed"]
            $vis $($word)+(mut self $(, $arg: $type)?) -> Self {
                self.$($field).+ = $value;
                self
            }
        )+
    };
}
