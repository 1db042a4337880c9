//! Which functions there are and what each takes. What they mean stands in `docs/lab.md`.

/// The kind of a function's parameter, and its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Name(&'static str),
    Value(&'static str),
    Over,
    Variant,
}

/// A function's name and parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) function: Function,
    pub(super) parameters: &'static [Parameter],
    /// Number of parameters that are required.
    pub(super) needed: usize,
}

impl Signature {
    /// Returns the largest number of arguments of the function.
    pub(super) const fn most(&self) -> usize {
        match self.function {
            Function::Min | Function::Max => usize::MAX,
            _ => self.parameters.len(),
        }
    }

    /// The parameter at `place`. The functions min and max repeat their last parameter.
    pub(super) fn parameter(&self, place: usize) -> Option<Parameter> {
        let last = self.parameters.len().checked_sub(1)?;
        (place < self.most()).then(|| self.parameters.get(place.min(last)).copied())?
    }

    /// The function's usage for messages: `path(transfer, path, from second?, to second?)`.
    pub(super) fn usage(&self) -> String {
        let written: Vec<String> = self
            .parameters
            .iter()
            .enumerate()
            .map(|(place, parameter)| {
                let what = match parameter {
                    Parameter::Name(what) | Parameter::Value(what) => what,
                    Parameter::Over => "axis or members(group)",
                    Parameter::Variant => "[axis=value]",
                };
                format!("{what}{}", if place < self.needed { "" } else { "?" })
            })
            .collect();
        let more = if self.most() == usize::MAX { ", …" } else { "" };
        format!("{}({}{more})", self.name, written.join(", "))
    }
}

pub(super) const TRANSFER_NAME: Parameter = Parameter::Name("transfer");
const PATH_NAME: Parameter = Parameter::Name("path");
const REQUESTS_NAME: Parameter = Parameter::Name("requests");
const GATEWAYS_NAME: Parameter = Parameter::Name("gateways");
const FROM_NODE: Parameter = Parameter::Name("from node");
const TO_NODE: Parameter = Parameter::Name("to node");
const FROM_SECOND: Parameter = Parameter::Value("from second");
const TO_SECOND: Parameter = Parameter::Value("to second");
const PERCENTILE_VALUE: Parameter = Parameter::Value("percentile");
const RATE_VALUE: Parameter = Parameter::Value("Mbit/s");
const SECONDS_VALUE: Parameter = Parameter::Value("seconds");
const MEASURE_VALUE: Parameter = Parameter::Value("measure");

macro_rules! signatures {
    ($($name:literal $function:ident [$($parameter:expr),*] $needed:literal;)*) => {
        /// A function of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function {
            $($function),*
        }

        impl Function {
            /// How the function is called.
            pub(super) fn signature(self) -> &'static Signature {
                // The table and the functions are written by one list.
                &FUNCTION_SIGNATURES[self as usize]
            }

            /// Whether the function is a question to one run, and not to several or to numbers.
            pub(super) const fn is_asked_of_a_run(self) -> bool {
                (self as usize) < Self::Axis as usize && !matches!(self, Self::Stretch)
            }
        }

        /// Every function of the language.
        pub(super) const FUNCTION_SIGNATURES: &[Signature] = &[$(Signature {
            name: $name,
            function: Function::$function,
            parameters: &[$($parameter),*],
            needed: $needed,
        }),*];
    };
}

// Questions to one run come first, but for `stretch`, which compares two.
signatures! {
    "goodput" Goodput [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "path" Path [TRANSFER_NAME, PATH_NAME, FROM_SECOND, TO_SECOND] 2;
    "share" Share [TRANSFER_NAME, PATH_NAME, FROM_SECOND, TO_SECOND] 2;
    "window" Window [TRANSFER_NAME, PATH_NAME, FROM_SECOND, TO_SECOND] 2;
    "rtt" Rtt [TRANSFER_NAME, PATH_NAME, FROM_SECOND, TO_SECOND] 2;
    "completion" Completion [TRANSFER_NAME] 1;
    "dropped_at" DroppedAt [TRANSFER_NAME, PATH_NAME] 2;
    "deviation" Deviation [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "settles" Settles [TRANSFER_NAME, Parameter::Value("part"), Parameter::Value("last seconds")] 2;
    "reaches" Reaches [TRANSFER_NAME, RATE_VALUE, FROM_SECOND] 2;
    "fairness" Fairness [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "fairness_worst" FairnessWorst [TRANSFER_NAME, SECONDS_VALUE, FROM_SECOND, TO_SECOND] 2;
    "least" Least [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "most" Most [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "below" Below [TRANSFER_NAME, RATE_VALUE, FROM_SECOND, TO_SECOND] 2;
    "losses" Losses [TRANSFER_NAME] 1;
    "reorder" Reorder [TRANSFER_NAME] 1;
    "order_wait" OrderWait [TRANSFER_NAME, PERCENTILE_VALUE] 2;
    "usable" Usable [TRANSFER_NAME, FROM_SECOND, TO_SECOND] 1;
    "opened" Opened [TRANSFER_NAME, Parameter::Value("by second")] 1;
    "available" Available [TRANSFER_NAME, Parameter::Value("by second")] 1;
    "abroad" Abroad [TRANSFER_NAME] 1;
    "base_rtt" BaseRtt [TRANSFER_NAME] 1;
    "requests" Requests [REQUESTS_NAME, PERCENTILE_VALUE, FROM_SECOND, TO_SECOND] 2;
    "stretch" Stretch [REQUESTS_NAME, PERCENTILE_VALUE, Parameter::Variant, FROM_SECOND, TO_SECOND] 3;
    "finished" Finished [REQUESTS_NAME, FROM_SECOND, TO_SECOND] 1;
    "utilisation" Utilisation [FROM_NODE, TO_NODE, FROM_SECOND, TO_SECOND] 2;
    "queue" Queue [FROM_NODE, TO_NODE, FROM_SECOND, TO_SECOND] 2;
    "drops" Drops [FROM_NODE, TO_NODE, FROM_SECOND, TO_SECOND] 2;
    "waits" Waits [GATEWAYS_NAME, Parameter::Value("milliseconds")] 2;
    "in_vain" InVain [GATEWAYS_NAME] 1;
    "refused" Refused [GATEWAYS_NAME] 1;
    "found" Found [GATEWAYS_NAME, PERCENTILE_VALUE] 2;
    "optimum" Optimum [] 0;
    "end" End [] 0;
    "cut" Cut [] 0;
    "axis" Axis [Parameter::Name("axis")] 1;
    "spearman" Spearman [Parameter::Over, MEASURE_VALUE, MEASURE_VALUE] 2;
    "mean_over" MeanOver [Parameter::Over, MEASURE_VALUE] 2;
    "max_over" MaxOver [Parameter::Over, MEASURE_VALUE] 2;
    "min_over" MinOver [Parameter::Over, MEASURE_VALUE] 2;
    "percentile_over" PercentileOver [Parameter::Over, PERCENTILE_VALUE, MEASURE_VALUE] 3;
    "min" Min [MEASURE_VALUE] 1;
    "max" Max [MEASURE_VALUE] 1;
    "abs" Abs [MEASURE_VALUE] 1;
    "at_least" AtLeast [MEASURE_VALUE, Parameter::Value("bound")] 2;
    "at_most" AtMost [MEASURE_VALUE, Parameter::Value("bound")] 2;
    "otherwise" Otherwise [MEASURE_VALUE, Parameter::Value("value")] 2;
}

/// The function with this name. `None`: there is none.
pub(super) fn named(name: &str) -> Option<&'static Signature> {
    FUNCTION_SIGNATURES.iter().find(|signature| signature.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_its_row_in_the_guide() {
        let guide = include_str!("../../../../docs/lab.md");
        for signature in FUNCTION_SIGNATURES {
            assert!(
                guide.contains(&format!("`{}(", signature.name)),
                "{} is not in docs/lab.md",
                signature.name
            );
        }
    }

    #[test]
    fn usage_marks_what_may_be_left_out() {
        let usage = |name| named(name).map(Signature::usage).expect("a function");
        assert_eq!(usage("goodput"), "goodput(transfer, from second?, to second?)");
        assert_eq!(usage("max"), "max(measure, …)");
        assert_eq!(usage("stretch"), "stretch(requests, percentile, [axis=value], from second?, to second?)");
    }
}
