//! What each part counts: a struct of numbers that have names and can be added up.

/// Makes `Counters` of these counts.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// How often each thing happened at a gateway.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Each count with its name.
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
