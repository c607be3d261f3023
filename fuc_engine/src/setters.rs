//! A macro that writes the builder methods of operations and options.

/// Defines methods of the builder pattern, each of which sets the public field of the same name.
///
/// `Owner: ...` sets fields of `self`, which is an `Owner`. `Owner in inner: ...` sets fields of
/// `self.inner`, which is an `Owner`.
macro_rules! setters {
    ($owner:ident: $( $(#[$doc:meta])* $field:ident: $type:ty, )*) => {
        $( setters! { @method $owner, $field, [$field], $type, $(#[$doc])* } )*
    };
    ($owner:ident in $inner:ident: $( $(#[$doc:meta])* $field:ident: $type:ty, )*) => {
        $( setters! { @method $owner, $field, [$inner.$field], $type, $(#[$doc])* } )*
    };
    (@method $owner:ident, $field:ident, [$($place:tt)*], $type:ty, $(#[$doc:meta])*) => {
        $(#[$doc])*
        ///
        #[doc = concat!(
            "Sets [`", stringify!($owner), "::", stringify!($field), "`]",
            "(field@crate::", stringify!($owner), "::", stringify!($field), ")."
        )]
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$($place)* = $field;
            self
        }
    };
}

pub(crate) use setters;
