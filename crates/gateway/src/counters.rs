//! Counters of a part: a struct of named numbers that can be summed.

/// Defines a struct `Counters` with the named counts.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The number of events of each kind at a gateway.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Returns each count with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        impl core::iter::Sum for Counters {
            fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
                parts.fold(Self::default(), |sum, part| Self { $($name: sum.$name + part.$name,)* })
            }
        }
    };
}

pub(crate) use counters;
