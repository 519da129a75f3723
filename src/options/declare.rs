//! What the declaration of options becomes: a struct with its table, and setters.

/// Defines the struct of a declaration, its default, and its table.
macro_rules! define_options {
    (
        $(#[$attribute:meta])*
        $options:ident {
            $($(#[doc = $doc:literal])+
            $scope:ident $name:ident: $type:ty $([$form:expr])? = $default:expr,
            |$value:ident: $argument:ty| $converted:expr;)*
        }
        $($(#[doc = $other_doc:literal])+ $other:ident: $other_type:ty;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $options {
            $($(#[doc = $doc])+ pub $name: $type,)*
            $($(#[doc = $other_doc])+ pub $other: $other_type,)*
        }

        impl Default for $options {
            fn default() -> Self {
                Self { $($name: $default,)* $($other: None,)* }
            }
        }

        impl $options {
            /// All options that have a text, in the order of the documents.
            pub const TABLE: &'static [$crate::options::OptionRow<Self>] = &[$(
                $crate::options::OptionRow {
                    info: $crate::options::OptionInfo {
                        name: stringify!($name),
                        scope: $crate::options::Scope::$scope,
                        form: {
                            let form = <$type as $crate::options::value::OptionValue>::FORM;
                            $(let _ = form; let form = $form;)?
                            form
                        },
                        lines: concat!($($doc, "\n"),+),
                        default: || {
                            let value: $type = $default;
                            $crate::options::value::OptionValue::text(&value)
                        },
                    },
                    get: |options| $crate::options::value::OptionValue::text(&options.$name),
                    set: |options, text| {
                        let value = $crate::options::value::OptionValue::parse(
                            stringify!($name),
                            text,
                        );
                        options.$name = value?;
                        Ok(())
                    },
                    reset: |options| options.$name = Self::default().$name,
                },
            )*];

            /// Sets the option of this name to the value that the text describes; `default` is
            /// always allowed.
            ///
            /// # Errors
            /// [`Error::Argument`](crate::Error::Argument) for an unknown name or value; it lists
            /// the known ones.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), fft_core::Error> {
                $crate::options::row::row(Self::TABLE, name)?.set(self, text)
            }

            /// The value of the option of this name as text; `default` where the library decides.
            ///
            /// # Errors
            /// [`Error::Argument`](crate::Error::Argument) for an unknown name; it lists the known
            /// ones.
            pub fn get(&self, name: &str) -> Result<String, fft_core::Error> {
                Ok($crate::options::row::row(Self::TABLE, name)?.text(self))
            }
        }
    };
}

/// A method for each option of a declaration, in an `impl` block of a draft that has `with`.
macro_rules! setters {
    (
        $(#[$attribute:meta])*
        $options:ident {
            $($(#[doc = $doc:literal])+
            $scope:ident $name:ident: $type:ty $([$form:expr])? = $default:expr,
            |$value:ident: $argument:ty| $converted:expr;)*
        }
        $($rest:tt)*
    ) => {$(
        $(#[doc = $doc])+
        ///
        #[doc = concat!("Unless you call this, it is `", stringify!($default), "`.")]
        pub fn $name(self, $value: $argument) -> Self {
            self.with(|options| options.$name = $converted)
        }
    )*};
}

pub(crate) use {define_options, setters};
